"""Links in the browser: the table, a link's own page, its form, its people, and the tags they share. Everything works without script."""

from refract.links.pages import form, invitations, looking, one, people, table, tags
from refract.links.pages.figures import Figures
from refract.links.pages.form import show_form
from refract.links.pages.rows import newest, row
from refract.links.pages.typed import shorten

ROUTERS = (table.router, form.router, looking.router, people.router, invitations.router, tags.router, one.router)
"""`one` last: it takes whatever step is left."""

__all__ = ["ROUTERS", "Figures", "newest", "row", "shorten", "show_form"]
