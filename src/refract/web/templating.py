"""Template rendering. Autoescaping is on and scripts are never inline."""

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
    """Return a loader of shared templates (`frame.html`) and of features (`links/detail.html`).

    A feature's templates are in its own package. The caller names the features.
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
        """Compile all templates and read all catalogues, so that no request waits for it."""
        for name in self.environment.list_templates(extensions=["html"]):
            self.environment.get_template(name)
        load_languages()

    def render(self, template: str, **context: Any) -> str:
        return self.environment.get_template(template).render(**context)
