"""The library in the browser: capture, the review deck, the shelf, reading, one's own tags. Everything works without script."""

from refract.library.pages import items, review, shelf, tags
from refract.library.pages.budget import of_person
from refract.web.toolkit import page_router

router = page_router()
for part in (review, shelf, items, tags):
    router.include_router(part.router)

__all__ = ["of_person", "router"]
