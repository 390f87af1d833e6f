"""The people in tests of tags."""

from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "root"]
