"""The library in the browser: capture, review, the shelf, reading, tags and rules, bookmarks in and out. All of it works without script."""

from refract.library.pages import browse, detail, import_export, review, rules, tags
from refract.library.quota_summary import load_quota_summary

ROUTERS = (
    review.router,
    browse.router,
    import_export.router,
    detail.router,
    tags.router,
    rules.router,
)

__all__ = ["ROUTERS", "load_quota_summary"]
