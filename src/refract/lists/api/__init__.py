"""API of lists."""

from refract.lists.api import entries, lists
from refract.lists.api import lists as api_lists

ROUTERS = (lists.router, entries.router, api_lists.public_router)

__all__ = ["ROUTERS"]
