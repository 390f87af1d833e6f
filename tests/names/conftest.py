"""The people in tests of names."""

from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "root"]
