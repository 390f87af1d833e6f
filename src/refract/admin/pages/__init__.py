"""The operators' screens."""

from refract.admin.pages import operations, people

ROUTERS = (operations.router, people.router)
