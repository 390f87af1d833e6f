"""Pages from templates. Autoescaping is on and nothing is inline, so a text can never become a script."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from refract import __version__

HERE = Path(__file__).parent
STATIC = HERE / "static"


class Pages:
    """Renders templates of the toolkit and of the features that add their folders."""

    def __init__(self, public_url: str, *folders: Path) -> None:
        self.environment = Environment(
            loader=FileSystemLoader([HERE / "templates", *folders]),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.globals.update(static=static, version=__version__, base_url=public_url)

    def render(self, template: str, **context: Any) -> str:
        return self.environment.get_template(template).render(**context)


@cache
def static(name: str) -> str:
    """The address of a static file, with its content's digest, so that browsers may keep it for ever."""
    content = (STATIC / name).read_bytes()
    return f"/static/{hashlib.blake2b(content, digest_size=5).hexdigest()}/{name}"
