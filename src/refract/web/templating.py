"""Pages from templates. Autoescaping is on and nothing is inline, so a text can never become a script."""

from pathlib import Path
from typing import Any

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    select_autoescape,
)

from refract import __version__
from refract.core.lookalikes import to_ascii_url
from refract.web.jinja_i18n import install_i18n, load_languages
from refract.web.static_files import static

WEB_DIR = Path(__file__).parent


def template_loader(*features: str) -> BaseLoader:
    """Return a loader for the shared templates (`frame.html`) and those of the features (`links/detail.html`).

    A feature's templates lie in its own folder. `web` knows none of them by itself: the caller names those it has.
    """
    folders: dict[str, BaseLoader] = {
        feature: FileSystemLoader(WEB_DIR.parent / feature / "templates") for feature in features
    }
    return ChoiceLoader([FileSystemLoader(WEB_DIR / "templates"), PrefixLoader(folders)])


class TemplateRenderer:
    """Renders the shared templates and those of the named features."""

    def __init__(self, public_url: str, *features: str) -> None:
        self.environment = Environment(
            loader=template_loader(*features),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        install_i18n(self.environment)
        self.environment.filters["ascii_address"] = to_ascii_url
        self.environment.globals.update(static=static, version=__version__, base_url=public_url)

    def compile_templates(self) -> None:
        """Compile every template and read every catalogue. The first page of a kind would wait for it, and everyone else with it."""
        for name in self.environment.list_templates(extensions=["html"]):
            self.environment.get_template(name)
        load_languages()

    def render(self, template: str, **context: Any) -> str:
        return self.environment.get_template(template).render(**context)
