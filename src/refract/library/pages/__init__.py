"""Pages of the library: capture, review, list, reader, tags, rules, import and export.

All of them work without script.
"""

from refract.library.pages import browse, bulk, detail, import_export, review, tags
from refract.library.quota_summary import load_quota_summary

ROUTERS = (
    review.router,
    browse.router,
    bulk.router,
    import_export.router,
    detail.router,
    tags.router,
    tags.rules_router,
)

__all__ = ["ROUTERS", "load_quota_summary"]
