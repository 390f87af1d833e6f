"""Campaign parameters (`utm_…`) in the query of a destination. Pure."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote_plus

UTM_KEYS: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_PLACEHOLDER_BRACES = "{}"


def read_campaign(destination: str) -> dict[str, str]:
    """Return the campaign parameters of a URL, the first of each, without blank ones."""
    found: dict[str, str] = {}
    for part in _split(destination)[1]:
        key, _, value = part.partition("=")
        name = unquote_plus(key)
        if name in UTM_KEYS and value:
            found.setdefault(name, unquote_plus(value))
    return found


def set_campaign(destination: str, changes: Mapping[str, str]) -> str:
    """Return the URL with these campaign parameters; a blank value removes one.

    Everything else stays as typed: other parameters, placeholders and the fragment.
    """
    before, parts, fragment = _split(destination)
    for name, value in changes.items():
        places = [
            place
            for place, part in enumerate(parts)
            if unquote_plus(part.partition("=")[0]) == name
        ]
        kept = [f"{name}={quote(value, safe=_PLACEHOLDER_BRACES)}"] if value else []
        first = places[0] if places else len(parts)
        rest = [part for place, part in enumerate(parts) if place not in places]
        parts = [*rest[:first], *kept, *rest[first:]]
    query = "&".join(parts)
    return f"{before}{'?' + query if query else ''}{fragment}"


def _split(destination: str) -> tuple[str, list[str], str]:
    """Return what comes before the query, its parameters, and the fragment with its `#`."""
    rest, mark, fragment = destination.partition("#")
    before, _, query = rest.partition("?")
    return before, query.split("&") if query else [], mark + fragment
