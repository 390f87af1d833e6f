"""API routes of links, their names, people and history."""

from refract.links.api import blocked_domains, bulk, invitations, links, names, people
from refract.links.api import links as api_links

ROUTERS = (
    bulk.router,
    links.router,
    api_links.lifecycle_router,
    people.router,
    names.router,
    names.availability_router,
    invitations.my_router,
    invitations.link_router,
    blocked_domains.router,
)

__all__ = ["ROUTERS"]
