"""The operators' screens."""

from refract.admin.pages import barred, lists, operations, people, reports

ROUTERS = (operations.router, people.router, barred.router, lists.router, reports.router)
