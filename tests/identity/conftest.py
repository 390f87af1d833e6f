"""People for the tests of identity."""

from tests.people import ada, bob, root

__all__ = ["ada", "bob", "root"]
