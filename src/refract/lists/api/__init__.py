"""Lists over HTTP."""

from refract.lists.api import entries, lists, public

ROUTERS = (lists.router, entries.router, public.router)

__all__ = ["ROUTERS"]
