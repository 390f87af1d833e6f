"""The operators' screens."""

from refract.admin.pages import lists, operations, people, reports
from refract.admin.pages import people as pages_people

ROUTERS = (
    operations.router,
    people.router,
    pages_people.barred_router,
    lists.router,
    reports.router,
)
