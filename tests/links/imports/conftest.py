"""Who the tests about imports speak of."""

from tests.people import ada, bob

__all__ = ["ada", "bob"]
