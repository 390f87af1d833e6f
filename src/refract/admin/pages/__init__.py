"""The operators' screens."""

from refract.admin.pages import barred, lists, operations, people

ROUTERS = (operations.router, people.router, barred.router, lists.router)
