"""Users with links to count."""

from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "root"]
