"""Lists in the browser: mine, and the builder, for people and for strangers alike. Forms work without script."""

from refract.lists.pages import entries, mine, one

ROUTERS = (mine.router, one.router, entries.router)
"""`mine` first: its words are no ids."""
