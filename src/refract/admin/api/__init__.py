"""The calls for those who run the place."""

from refract.admin.api import barred, lists, operations, people

ROUTERS = (
    people.router,
    barred.router,
    operations.audit_router,
    operations.jobs_router,
    operations.figures_router,
    operations.links_router,
    lists.router,
)

__all__ = ["ROUTERS"]
