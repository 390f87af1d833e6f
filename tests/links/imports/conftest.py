"""The people in tests of imports."""

from tests.people import ada, bob

__all__ = ["ada", "bob"]
