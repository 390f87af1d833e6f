"""Parsed destinations with placeholders.

    {1} {2}        the first and second segment of the extra path
    {name}         the next segment without a number, in order of first appearance
    {name=main}    the same with a default for a missing segment; `{1=main}` works too
    {*}            all remaining segments, with the slashes between them

Placeholders work in the path, the query and the fragment, not before them. Braces around anything
else are ordinary characters. To write the text `{name}` without a placeholder, use `%7Bname%7D`.
"""

import re
from dataclasses import dataclass

from refract.core.phrases import Phrase
from refract.core.urls import MAX_URL_LENGTH, BadUrl, WebUrl, parse_web_url

_PLACEHOLDER = re.compile(r"\{(\*|[1-9][0-9]?|[A-Za-z][A-Za-z0-9_-]{0,29})(?:=([^{}]*))?\}")
_BEFORE_PATH = re.compile(r"[^/?#\\]*[/\\]*[^/?#\\]*")
_HALF_ESCAPE = re.compile(r"%[0-9A-Fa-f]?$")
_MAX_PLACEHOLDERS = 20
REST_KEY = "*"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder. `position` counts segments from 1; the rest has none."""

    key: str
    position: int | None
    default: str | None

    def __str__(self) -> str:
        return f"{{{self.key}}}" if self.default is None else f"{{{self.key}={self.default}}}"


TemplatePiece = str | Placeholder
TemplatePieces = tuple[TemplatePiece, ...]


@dataclass(frozen=True, slots=True)
class DestinationTemplate:
    """A parsed destination. Without placeholders, `href` is sent as `Location`."""

    href: str
    """Serialised, with placeholders in braces. Equal destinations have the same one."""
    scheme: str
    host: str
    port: str
    path: tuple[TemplatePieces, ...]
    query: TemplatePieces
    fragment: TemplatePieces
    placeholders: tuple[Placeholder, ...]

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}{':' + self.port if self.port else ''}"

    @property
    def last_position(self) -> int:
        return max(
            (gap.position for gap in self.placeholders if gap.position is not None), default=0
        )

    @property
    def has_rest(self) -> bool:
        return any(gap.key == REST_KEY for gap in self.placeholders)

    @property
    def fixed_href(self) -> str:
        """Return the URL up to the first placeholder, which all its expansions share."""
        if not self.placeholders:
            return self.href
        kept: list[str] = []
        for segment in self.path:
            if any(isinstance(piece, Placeholder) for piece in segment):
                return f"{self.origin}/{''.join(part + '/' for part in kept)}"
            kept.append("".join(map(str, segment)))
        return f"{self.origin}/{'/'.join(kept)}"

    def format_usage(self, name: str) -> str:
        """Return how the short link is used, with its placeholders: `/jira/{1}`."""
        by_position = {gap.position: gap for gap in self.placeholders if gap.position is not None}
        gaps = [
            str(by_position.get(position, "…")) for position in range(1, self.last_position + 1)
        ]
        rest = ["{*}"] if self.has_rest else [] if gaps else ["…"]
        return "/".join(["", name, *gaps, *rest])


def has_placeholders(destination: str) -> bool:
    return _PLACEHOLDER.search(destination) is not None


def parse_template(destination: str) -> DestinationTemplate:
    """Parse a destination as typed. Raises `BadUrl`."""
    typed = destination.strip(" ")
    if len(typed) > MAX_URL_LENGTH:
        raise BadUrl(
            Phrase(
                "The URL has {length} characters. The limit is {limit}.",
                length=len(typed),
                limit=MAX_URL_LENGTH,
            )
        )
    found = list(_PLACEHOLDER.finditer(typed))
    if not found:
        return _build_plain(parse_web_url(typed))
    gaps = _assign_positions(found)
    salt = _find_marker(typed)
    marks = iter(range(len(found)))
    marked = _PLACEHOLDER.sub(lambda _match: f"{salt}{next(marks)}z", typed)
    before = _BEFORE_PATH.match(marked)
    if before is not None and salt in before.group():
        raise BadUrl(Phrase("Use placeholders only in the path or the query of the URL."))
    url = parse_web_url(marked, limit=MAX_URL_LENGTH + len(found) * (len(salt) + 3))
    return _assemble_template(url, salt, [gaps[match.group(1)] for match in found])


def _build_plain(url: WebUrl) -> DestinationTemplate:
    path = tuple((segment,) for segment in url.path.split("/")[1:])
    return DestinationTemplate(
        url.href,
        url.scheme,
        url.host,
        url.port,
        path,
        (url.query.removeprefix("?"),),
        (url.fragment.removeprefix("#"),),
        (),
    )


def _assign_positions(found: list[re.Match[str]]) -> dict[str, Placeholder]:
    """Return the placeholders by name, with positions and defaults."""
    if len(found) > _MAX_PLACEHOLDERS:
        raise BadUrl(
            Phrase(
                "The URL has {count} placeholders. The limit is {limit}.",
                count=len(found),
                limit=_MAX_PLACEHOLDERS,
            )
        )
    defaults: dict[str, str | None] = {}
    for match in found:
        key, default = match.group(1), match.group(2)
        if default is not None and not default.isprintable():
            raise BadUrl(
                Phrase(
                    "The default of {placeholder} contains control or invisible characters.",
                    placeholder=f"{{{key}}}",
                )
            )
        known = defaults.setdefault(key, default)
        if default is not None and known is not None and default != known:
            raise BadUrl(
                Phrase(
                    '{placeholder} has two different defaults, "{first}" and "{second}".',
                    placeholder=f"{{{key}}}",
                    first=known,
                    second=default,
                )
            )
        defaults[key] = default if known is None else known
    claimed = {int(key) for key in defaults if key.isdigit()}
    free = (position for position in range(1, 2 * _MAX_PLACEHOLDERS) if position not in claimed)
    positions = {
        key: None if key == REST_KEY else int(key) if key.isdigit() else next(free)
        for key in defaults
    }
    return {key: Placeholder(key, positions[key], default) for key, default in defaults.items()}


def _find_marker(typed: str) -> str:
    """Return letters that replace placeholders during parsing.

    They do not occur in the URL and have no meaning in one.
    """
    folded = typed.casefold()
    return next(
        salt for salt in (f"zq{number}x" for number in range(MAX_URL_LENGTH)) if salt not in folded
    )


def _assemble_template(url: WebUrl, salt: str, gaps: list[Placeholder]) -> DestinationTemplate:
    mark = re.compile(rf"{salt}(\d+)z")

    def pieces(text: str) -> TemplatePieces:
        parts = mark.split(text)
        for literal in parts[0:-1:2]:
            if _HALF_ESCAPE.search(literal):
                raise BadUrl(Phrase("A placeholder can't follow a % sign."))
        return tuple(
            gaps[int(part)] if place % 2 else part for place, part in enumerate(parts) if part
        )

    path = tuple(pieces(segment) for segment in url.path.split("/")[1:])
    query, fragment = pieces(url.query.removeprefix("?")), pieces(url.fragment.removeprefix("#"))
    seen = sum(
        isinstance(piece, Placeholder) for part in (*path, query, fragment) for piece in part
    )
    if seen != len(gaps):
        raise BadUrl(Phrase("A placeholder can't come before /../, which would remove it."))
    href = mark.sub(lambda match: str(gaps[int(match.group(1))]), url.href)
    unique = tuple(dict.fromkeys(gaps))
    return DestinationTemplate(href, url.scheme, url.host, url.port, path, query, fragment, unique)
