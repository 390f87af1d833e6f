"""API routes of links, their names, people and history."""

from refract.links.api import (
    blocked_domains,
    bulk,
    imports,
    links,
    names,
    people,
    rules,
    teams,
    utm_templates,
)
from refract.links.api import links as api_links

ROUTERS = (
    bulk.router,
    imports.router,
    links.router,
    api_links.lifecycle_router,
    people.router,
    teams.router,
    rules.router,
    utm_templates.router,
    api_links.qr_style_router,
    names.router,
    names.availability_router,
    people.my_invitations_router,
    people.invitations_router,
    blocked_domains.router,
    teams.defaults_router,
)

__all__ = ["ROUTERS"]
