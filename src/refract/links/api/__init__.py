"""The calls about links, their names, people, and history."""

from refract.links.api import blocked, bulk, invitations, life, links, names, people

ROUTERS = (
    bulk.router,
    links.router,
    life.router,
    people.router,
    names.router,
    names.open_router,
    invitations.mine,
    invitations.of_link,
    blocked.router,
)

__all__ = ["ROUTERS"]
