"""Who the tests about lists speak of."""

from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "root"]
