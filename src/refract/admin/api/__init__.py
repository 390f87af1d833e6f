"""The admin API."""

from refract.admin.api import invitations, lists, operations, people, reports
from refract.admin.api import people as api_people

ROUTERS = (
    people.router,
    api_people.barred_router,
    invitations.router,
    operations.audit_router,
    operations.jobs_router,
    operations.figures_router,
    operations.links_router,
    lists.router,
    reports.router,
)

__all__ = ["ROUTERS"]
