"""Who the tests about home speak of."""

from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "root"]
