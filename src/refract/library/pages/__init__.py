"""The library in the browser: capture, review, the shelf, reading, tags and rules, bookmarks in and out. All of it works without script."""

from refract.library.pages import items, review, rules, shelf, tags, transfer
from refract.library.pages.budget import of_person

ROUTERS = (review.router, shelf.router, transfer.router, items.router, tags.router, rules.router)

__all__ = ["ROUTERS", "of_person"]
