"""The people in tests of tags."""

from tests.people import ada, as_ada, bob, cleo, root

__all__ = ["ada", "as_ada", "bob", "cleo", "root"]
