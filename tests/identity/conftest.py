"""Fixtures of the identity tests."""

from tests.people import ada, bob, root

__all__ = ["ada", "bob", "root"]
