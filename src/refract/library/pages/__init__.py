"""The library in the browser: capture, the review deck, the shelf, reading, one's own tags. Everything works without script."""

from refract.library.pages import items, review, shelf, tags

ROUTERS = (review.router, shelf.router, items.router, tags.router)
