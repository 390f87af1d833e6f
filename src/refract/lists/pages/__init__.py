"""Lists in the browser: mine, and the builder, for people and for strangers alike. Forms work without script."""

from refract.lists.pages import entries, mine, one
from refract.web.toolkit import page_router

router = page_router()
for part in (mine, one, entries):  # `mine` first: its words are no ids
    router.include_router(part.router)

__all__ = ["router"]
