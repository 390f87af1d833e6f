"""Pages from templates. Autoescaping is on and nothing is inline, so a text can never become a script."""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined, select_autoescape

from refract import __version__
from refract.core.lookalikes import to_ascii_url

WEB_DIR = Path(__file__).parent
STATIC_DIR = WEB_DIR / "static"
_REFERENCE = re.compile(r'url\("([a-z0-9.-]+)"\)')


def template_loader(*features: str) -> BaseLoader:
    """Return a loader for the shared templates (`frame.html`) and those of the features (`links/detail.html`).

    A feature's templates lie in its own folder. `web` knows none of them by itself: the caller names those it has.
    """
    folders: dict[str, BaseLoader] = {feature: FileSystemLoader(WEB_DIR.parent / feature / "templates") for feature in features}
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
        self.environment.filters["ascii_address"] = to_ascii_url
        self.environment.globals.update(static=get_static_url, version=__version__, base_url=public_url)

    def compile_templates(self) -> None:
        """Compile every template. The first page of a kind would otherwise wait for it, and everybody else with it."""
        for name in self.environment.list_templates(extensions=["html"]):
            self.environment.get_template(name)

    def render(self, template: str, **context: Any) -> str:
        return self.environment.get_template(template).render(**context)


@cache
def read_static(name: str) -> bytes:
    """A static file as it is served: a stylesheet names its fonts by the address under which browsers keep them."""
    raw = (STATIC_DIR / name).read_bytes()
    if not name.endswith(".css"):
        return raw
    return _REFERENCE.sub(lambda found: f'url("{get_static_url(found[1])}")', raw.decode()).encode()


@cache
def get_static_url(name: str) -> str:
    """The address of a static file, with its content's digest, so that browsers may keep it for ever."""
    return f"/static/{hashlib.blake2b(read_static(name), digest_size=5).hexdigest()}/{name}"
