"""Static files below one digest, so that modules and stylesheets use relative URLs."""

import hashlib
import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_STYLE_IMPORT = re.compile(r'@import "([\w/]+\.css)"(?: layer\((\w+)\))?;')
_STYLE_COMMENT_OR_INDENT = re.compile(r"/\*.*?\*/|^\s+", re.DOTALL | re.MULTILINE)
_SCRIPT_IMPORT = re.compile(r'^import (?:[^;"]* from )?"\./(\w+)\.js";$', re.MULTILINE)
_SCRIPT_COMMENT_OR_INDENT = re.compile(r"^\s*(?://.*|/\*\*[\s\S]*?\*/)$|^\s+", re.MULTILINE)


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
    """Return the content of a static file as it is sent. Raises KeyError.

    Our stylesheets have their imports in them. Neither they nor our scripts have comments on lines
    of their own, or indentation.
    """
    path = static_files()[name]
    if name.startswith("css/"):
        return _bundle(path).encode()
    if name.startswith("js/"):
        return _SCRIPT_COMMENT_OR_INDENT.sub("", path.read_text(encoding="utf-8")).encode()
    return path.read_bytes()


@cache
def list_imports(module: str) -> tuple[str, ...]:
    """Return the scripts that a script imports, and those that they import, by name."""
    found: dict[str, None] = {}
    for name in _SCRIPT_IMPORT.findall((STATIC / f"js/{module}.js").read_text(encoding="utf-8")):
        found |= dict.fromkeys((name, *list_imports(name)))
    return tuple(sorted(found))


def _bundle(stylesheet: Path) -> str:
    """Inline imported stylesheets, without comments and indentation. Imports don't nest."""

    def inline(found: re.Match[str]) -> str:
        css = (stylesheet.parent / found[1]).read_text(encoding="utf-8")
        return f"@layer {found[2]} {{\n{css}}}" if found[2] else css

    css = _STYLE_IMPORT.sub(inline, stylesheet.read_text(encoding="utf-8"))
    return _STYLE_COMMENT_OR_INDENT.sub("", css)
