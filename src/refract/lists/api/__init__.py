"""API of lists."""

from refract.lists.api import entries, lists

ROUTERS = (lists.router, entries.router, lists.public_router)

__all__ = ["ROUTERS"]
