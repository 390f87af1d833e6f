"""The calls about items, their review, rules and the budget; about the library, its tags, imports and exports."""

from refract.library.api import browse, bulk, items, quota, review, rules, tags, transfer

ROUTERS = (
    bulk.router,
    items.router,
    review.router,
    browse.router,
    browse.library_router,
    transfer.router,
    tags.router,
    quota.router,
    quota.usage_router,
    quota.admin_router,
    rules.router,
)

__all__ = ["ROUTERS"]
