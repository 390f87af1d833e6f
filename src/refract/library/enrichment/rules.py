"""Standing orders: `github.com → code`, `example.com/blog → reading`, `"espresso" → coffee`."""

import re
from urllib.parse import urlsplit

from refract.core.text import fold_text, make_excerpt
from refract.library.enrichment.language import count_run, stem_words
from refract.library.errors import InvalidRule

_HOST = re.compile(r"^(?:\*\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)(/\S*)?$")


def normalize_pattern(pattern: str) -> str:
    """A host with or without a path, or words in quotes; in the one form in which it is kept."""
    pattern = pattern.strip()
    if len(pattern) > 2 and pattern[0] == pattern[-1] == '"':
        if not stem_words(pattern):
            raise InvalidRule(
                pattern=make_excerpt(pattern), why="there is no word between the quotes"
            )
        return f'"{pattern[1:-1].strip()}"'
    bare = re.sub(r"^https?://", "", fold_text(pattern)).removeprefix("www.").rstrip("/")
    if not _HOST.match(bare):
        raise InvalidRule(
            pattern=make_excerpt(pattern),
            why=(
                "write a host such as github.com, with a path if wanted, or words in quotes:"
                ' "espresso"'
            ),
        )
    return bare


def is_match(pattern: str, url: str | None, text: str) -> bool:
    """A host also means what is below it; a path means everything that begins with it; words mean the text."""
    if pattern.startswith('"'):
        return count_run(stem_words(pattern), stem_words(text)) > 0
    if url is None:
        return False
    parts = urlsplit(fold_text(url))
    host, slash, path = pattern.removeprefix("*.").partition("/")
    saved = (parts.hostname or "").removeprefix("www.")
    below = saved == host or saved.endswith(f".{host}")
    inside = f"{parts.path.rstrip('/')}/".startswith(f"/{path.rstrip('/')}/") if path else True
    return below and (inside or not slash)
