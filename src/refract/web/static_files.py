"""Static files below one digest, so that modules and stylesheets use relative URLs."""

import hashlib
import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
STYLESHEET = "css/app.css"
_IMPORT = re.compile(r'@import "([\w/]+\.css)"(?: layer\((\w+)\))?;')
_COMMENT_OR_INDENT = re.compile(r"/\*.*?\*/|^\s+", re.DOTALL | re.MULTILINE)


@cache
def static_files() -> dict[str, Path]:
    """Return every static file by its name in URLs."""
    return {
        path.relative_to(STATIC).as_posix(): path
        for path in sorted(STATIC.rglob("*"))
        if path.is_file()
    }


@cache
def static_digest() -> str:
    """Return a digest of all static files and their names. It changes with any of them."""
    digest = hashlib.blake2b(digest_size=5)
    for name, path in static_files().items():
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def static(name: str) -> str:
    """Return the URL of a static file, cacheable forever. Raises KeyError if there is none."""
    static_files()[name]
    return f"/static/{static_digest()}/{name}"


@cache
def read_static(name: str) -> bytes:
    """Return the content of a static file; of a stylesheet with its imports. Raises KeyError."""
    path = static_files()[name]
    return _bundle(path).encode() if name == STYLESHEET else path.read_bytes()


def _bundle(stylesheet: Path) -> str:
    """Inline imported stylesheets, without comments and indentation. Imports don't nest."""

    def imported(found: re.Match[str]) -> str:
        css = (stylesheet.parent / found[1]).read_text(encoding="utf-8")
        return f"@layer {found[2]} {{\n{css}}}" if found[2] else css

    return _COMMENT_OR_INDENT.sub("", _IMPORT.sub(imported, stylesheet.read_text(encoding="utf-8")))
