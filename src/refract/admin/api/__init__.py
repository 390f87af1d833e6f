"""The calls for those who run the place."""

from refract.admin.api import operations, people

ROUTERS = (people.router, operations.audit_router, operations.jobs_router, operations.figures_router, operations.links_router)

__all__ = ["ROUTERS"]
