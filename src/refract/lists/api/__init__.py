"""API of lists."""

from refract.lists.api import entries, lists, sections

ROUTERS = (lists.router, entries.router, sections.router, lists.public_router)

__all__ = ["ROUTERS"]
