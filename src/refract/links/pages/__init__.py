"""Links in the browser: the table, a link's own page, its form, its people, and the tags they share. Everything works without script."""

from refract.links.pages import form, looking, one, people, table, tags
from refract.links.pages.figures import Figures
from refract.links.pages.form import show_form
from refract.links.pages.rows import newest, row
from refract.links.pages.typed import shorten
from refract.web.toolkit import page_router

router = page_router()
for part in (table, form, looking, people, tags, one):  # `one` last: it takes whatever step is left
    router.include_router(part.router)

__all__ = ["Figures", "newest", "router", "row", "shorten", "show_form"]
