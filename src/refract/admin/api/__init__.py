"""The calls for those who run the place."""

from refract.admin.api import barred, lists, operations, people, reports

ROUTERS = (
    people.router,
    barred.router,
    operations.audit_router,
    operations.jobs_router,
    operations.figures_router,
    operations.links_router,
    lists.router,
    reports.router,
)

__all__ = ["ROUTERS"]
