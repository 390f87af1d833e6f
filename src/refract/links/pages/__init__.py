"""Pages of links: table, link, form, people, invitations, tags. All work without script."""

from refract.links.pages import (
    bulk,
    detail,
    editor,
    imports,
    index,
    invitations,
    people,
    preview,
    qr,
    rules,
    tags,
    teams,
    utm_templates,
    views,
)
from refract.links.pages.editor import render_form
from refract.links.pages.forms import shorten_url
from refract.links.pages.link_rows import build_row, get_stats_source, load_newest_rows

ROUTERS = (
    index.router,
    imports.router,
    bulk.router,
    views.router,
    editor.router,
    preview.router,
    people.router,
    teams.router,
    rules.router,
    qr.router,
    utm_templates.router,
    invitations.router,
    tags.router,
    detail.router,
)
"""`detail` is last, because its route takes any remaining step."""

__all__ = [
    "ROUTERS",
    "build_row",
    "get_stats_source",
    "load_newest_rows",
    "render_form",
    "shorten_url",
]
