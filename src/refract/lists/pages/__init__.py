"""Lists in the browser: mine, and the builder, for people and for strangers alike. Forms work without script."""

from refract.lists.pages import detail, entries, index

ROUTERS = (index.router, detail.router, entries.router)
"""`mine` first: its words are no ids."""
