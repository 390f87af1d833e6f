"""The calls about items, their review, rules and the budget."""

from refract.library.api import bulk, items, quota, review, rules

ROUTERS = (bulk.router, items.router, review.router, quota.router, quota.admin_router, rules.router)

__all__ = ["ROUTERS"]
