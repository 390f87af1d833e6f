"""Users of the tests of home."""

from tests.people import ada, as_ada, bob, cleo, root

__all__ = ["ada", "as_ada", "bob", "cleo", "root"]
