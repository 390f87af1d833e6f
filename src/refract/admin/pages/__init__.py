"""Admin pages."""

from refract.admin.pages import audit, lists, operations, people, reports

ROUTERS = (
    operations.router,
    people.router,
    lists.router,
    reports.router,
    audit.router,
)
