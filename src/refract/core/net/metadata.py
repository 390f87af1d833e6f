"""What a page says of itself: title, description and picture, as text that can be kept. Pure."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 500
LONGEST_IMAGE = 2048
_BLANKS = re.compile(r"\s+")
_JOINERS = "\u200c\u200d"  # invisible, but they make emoji and many scripts what they are


@dataclass(frozen=True, slots=True)
class Metadata:
    title: str | None = None
    description: str | None = None
    image: str | None = None


def read_metadata(html: str, join: Callable[[str], str | None]) -> Metadata:
    """What the page offers for previews goes before its plain title. `join` makes a reference whole, or None where it leads nowhere."""
    tree = LexborHTMLParser(html)
    offered: dict[str, str] = {}
    for meta in tree.css("meta"):
        name = (meta.attributes.get("property") or meta.attributes.get("name") or "").strip().lower()
        content = meta.attributes.get("content")
        if name and content and content.strip():
            offered.setdefault(name, content)
    plain = tree.css_first("head > title") or tree.css_first("body > title")
    title = offered.get("og:title") or (plain.text(deep=True) if plain is not None else None) or offered.get("twitter:title")
    description = offered.get("og:description") or offered.get("description") or offered.get("twitter:description")
    picture = offered.get("og:image") or offered.get("og:image:url") or offered.get("twitter:image")
    image = join(picture.strip()) if picture else None
    return Metadata(
        tidy(title, LONGEST_TITLE), tidy(description, LONGEST_DESCRIPTION), image if image and len(image) <= LONGEST_IMAGE else None
    )


def tidy(text: str | None, most: int) -> str | None:
    """One line without invisible signs, cut at a word where it is too long; None for nothing."""
    if text is None:
        return None
    visible = "".join(sign for sign in text if sign.isspace() or sign in _JOINERS or unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))
    line = _BLANKS.sub(" ", visible).strip()
    if len(line) > most:
        cut = line[: most - 1]
        line = f"{cut[: cut.rfind(' ')] if ' ' in cut[most // 2 :] else cut}…"
    return line or None
