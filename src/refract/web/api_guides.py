"""Guides of the API documentation: what applies to every operation. English, like the API."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup, escape

_CODE: Final = re.compile(r"`([^`]+)`")
_SAMPLE: Final = re.compile(r"^``` (?P<title>.+)\n(?P<text>(?:.*\n)+?)```$", re.MULTILINE)
GUIDES_FILE: Final = Path(__file__).with_name("api_guides.md")


@dataclass(frozen=True)
class ApiGuide:
    """A guide: paragraphs, and a sample of a request or a response."""

    id: str
    title: str
    paragraphs: tuple[str, ...]
    sample_title: str = ""
    sample: str = ""


def load_guides(base_url: str) -> list[ApiGuide]:
    """Return the guides, with the URL of this installation in their samples."""
    _, *parts = re.split(r"^## ", GUIDES_FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [_parse_guide(part, base_url) for part in parts]


def _parse_guide(text: str, base_url: str) -> ApiGuide:
    title, _, body = text.partition("\n")
    sample = _SAMPLE.search(body)
    blocks = _SAMPLE.sub("", body).split("\n\n")
    return ApiGuide(
        title.lower().replace(" ", "-"),
        title,
        tuple(" ".join(block.split()) for block in blocks if block.strip()),
        sample["title"] if sample else "",
        sample["text"].rstrip().replace("{base}", base_url) if sample else "",
    )


def mark_code(text: str) -> Markup:
    """Return a text with `<code>` for what stands between backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped
