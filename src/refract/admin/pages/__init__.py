"""Admin pages."""

from refract.admin.pages import audit, links, lists, operations, people, reports

ROUTERS = (
    operations.router,
    people.router,
    links.router,
    lists.router,
    reports.router,
    audit.router,
)
