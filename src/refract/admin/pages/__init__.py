"""The operators' screens."""

from refract.admin.pages import barred, operations, people

ROUTERS = (operations.router, people.router, barred.router)
