"""The calls about links, their names, people, history and tags."""

from refract.links.api import blocked, bulk, life, links, names, people, tags

ROUTERS = (bulk.router, links.router, life.router, people.router, names.router, names.open_router, tags.router, blocked.router)

__all__ = ["ROUTERS"]
