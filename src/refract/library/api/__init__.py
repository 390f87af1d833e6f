"""API of the library: items, review, rules, quota, tags, imports and exports."""

from refract.library.api import browse, bulk, import_export, items, me, review, tags

ROUTERS = (
    bulk.router,
    items.router,
    review.router,
    browse.router,
    browse.library_router,
    import_export.router,
    tags.router,
    me.quota_router,
    me.usage_router,
    me.quota_admin_router,
    me.rules_router,
)

__all__ = ["ROUTERS"]
