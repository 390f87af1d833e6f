"""Tag rules: `github.com → code`, `example.com/blog → reading`, `"espresso" → coffee`."""

import re
from urllib.parse import urlsplit

from refract.core.text import fold_text, make_excerpt
from refract.library.enrichment.language import count_run, stem_words
from refract.library.errors import InvalidRule
from refract.web.i18n import mark, translate_error, translate_filled

NO_KEYWORD = mark("there is no word between the quotes")
NOT_A_PATTERN = mark(
    "enter a domain such as github.com or wiki/, with or without a path, or a keyword in quotes:"
    ' "espresso"'
)
TOO_MANY_RULES = mark("you already have {limit} rules; delete one first")
_PROBLEMS = (NO_KEYWORD, NOT_A_PATTERN, TOO_MANY_RULES)
_WORD = re.compile(r"(?!localhost$)[a-z0-9_-]+")
_PORT = re.compile(r":[0-9]+$")
_HOST = re.compile(
    r"^(?:\*\.)?(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:/\S*)?$"
)


def normalize_pattern(pattern: str) -> str:
    """Return the stored form of a pattern: a host with or without a path, or words in quotes.

    A word alone may be meant as a keyword; with a slash (`wiki/`, `http://wiki`) it is a host.
    Raises `InvalidRule` for any other text.
    """
    pattern = pattern.strip()
    if len(pattern) > 2 and pattern[0] == pattern[-1] == '"':
        if not stem_words(pattern):
            raise InvalidRule(pattern=make_excerpt(pattern), why=NO_KEYWORD)
        return f'"{pattern[1:-1].strip()}"'
    typed = fold_text(pattern)
    bare = re.sub(r"^https?://", "", typed).removeprefix("www.").rstrip("/")
    if _WORD.fullmatch(bare) and "/" in typed:  # a host without a dot, marked as one
        return f"{bare}/"
    if _WORD.fullmatch(bare) or not _HOST.match(bare):
        raise InvalidRule(pattern=make_excerpt(pattern), why=NOT_A_PATTERN)
    return bare


def translate_invalid_rule(error: InvalidRule) -> str:
    """Return the sentence of an error, with its reason, in the current language."""
    why = translate_filled(str(error.facts["why"]), _PROBLEMS)
    return translate_error(InvalidRule(pattern=error.facts["pattern"], why=why))


def is_match(pattern: str, url: str | None, text: str) -> bool:
    """Return whether a rule applies to an item.

    A host matches its subdomains too, a path everything below it, and words the text. A pattern
    without a port matches every port.
    """
    if pattern.startswith('"'):
        return count_run(stem_words(pattern), stem_words(text)) > 0
    if url is None:
        return False
    parts = urlsplit(fold_text(url))
    host, slash, path = pattern.removeprefix("*.").partition("/")
    saved = parts.netloc.rpartition("@")[2].removeprefix("www.")
    if not _PORT.search(host):
        saved = _PORT.sub("", saved)
    below = saved == host or saved.endswith(f".{host}")
    inside = f"{parts.path.rstrip('/')}/".startswith(f"/{path.rstrip('/')}/") if path else True
    return below and (inside or not slash)
