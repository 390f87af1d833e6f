"""Pages of lists, with and without an account. Forms work without JavaScript."""

from refract.lists.pages import detail, entries, index, sections

ROUTERS = (index.router, detail.router, entries.router, sections.router)
"""`index` first: its literal paths would otherwise be matched as ids."""
