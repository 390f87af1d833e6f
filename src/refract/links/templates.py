"""Destinations with placeholders, read before anything is put into them.

    {1} {2}        the first and second segment of the extra path
    {name}         the next segment that no number claims, in order of first appearance
    {name=main}    the same, with what to use when the segment is missing; `{1=main}` works too
    {*}            every segment that is left, with the slashes between them

A placeholder stands in the path, the query or the fragment, never before. Braces around anything else are ordinary characters,
and `%7Bname%7D` is how a placeholder's spelling is written when none is meant.
"""

import re
from dataclasses import dataclass

from refract.core.urls import MAX_URL, BadUrl, WebUrl, parse_web_url

_PLACEHOLDER = re.compile(r"\{(\*|[1-9][0-9]?|[A-Za-z][A-Za-z0-9_-]{0,29})(?:=([^{}]*))?\}")
_BEFORE_PATH = re.compile(r"[^/?#\\]*[/\\]*[^/?#\\]*")
_HALF_ESCAPE = re.compile(r"%[0-9A-Fa-f]?$")
_MOST = 20
REST = "*"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A gap. `position` counts segments from 1; the rest has none."""

    key: str
    position: int | None
    default: str | None

    def __str__(self) -> str:
        return f"{{{self.key}}}" if self.default is None else f"{{{self.key}={self.default}}}"


Piece = str | Placeholder
Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A destination taken apart. Without placeholders `href` is what goes into `Location`."""

    href: str
    """Serialised, placeholders in their braces: two destinations with the same one are the same destination."""
    scheme: str
    host: str
    port: str
    path: tuple[Pieces, ...]
    query: Pieces
    fragment: Pieces
    placeholders: tuple[Placeholder, ...]

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}{':' + self.port if self.port else ''}"

    @property
    def last_position(self) -> int:
        return max((gap.position for gap in self.placeholders if gap.position is not None), default=0)

    @property
    def takes_rest(self) -> bool:
        return any(gap.key == REST for gap in self.placeholders)

    @property
    def fixed_href(self) -> str:
        """The address up to the first gap: what can be said about every page this leads to."""
        if not self.placeholders:
            return self.href
        kept: list[str] = []
        for segment in self.path:
            if any(isinstance(piece, Placeholder) for piece in segment):
                return f"{self.origin}/{''.join(part + '/' for part in kept)}"
            kept.append("".join(map(str, segment)))
        return f"{self.origin}/{'/'.join(kept)}"

    def usage(self, name: str) -> str:
        """How the short link is written, gaps included: `/jira/{1}`."""
        by_position = {gap.position: gap for gap in self.placeholders if gap.position is not None}
        gaps = [str(by_position.get(position, "…")) for position in range(1, self.last_position + 1)]
        rest = ["{*}"] if self.takes_rest else [] if gaps else ["…"]
        return "/".join(["", name, *gaps, *rest])


def has_placeholders(destination: str) -> bool:
    return _PLACEHOLDER.search(destination) is not None


def read_template(destination: str) -> Template:
    """Read a destination as typed. `BadUrl` says what is wrong with it."""
    typed = destination.strip(" ")
    if len(typed) > MAX_URL:
        problem = f"The address is too long: at most {MAX_URL} characters, this has {len(typed)}."
        raise BadUrl(problem)
    found = list(_PLACEHOLDER.finditer(typed))
    if not found:
        return _plain(parse_web_url(typed))
    gaps = _number(found)
    salt = _unused(typed)
    marks = iter(range(len(found)))
    marked = _PLACEHOLDER.sub(lambda _match: f"{salt}{next(marks)}z", typed)
    before = _BEFORE_PATH.match(marked)
    if before is not None and salt in before.group():
        problem = "A placeholder may stand in the path or the query, never in the scheme, the host or the port."
        raise BadUrl(problem)
    url = parse_web_url(marked, limit=MAX_URL + len(found) * (len(salt) + 3))
    return _assemble(url, salt, [gaps[match.group(1)] for match in found])


def _plain(url: WebUrl) -> Template:
    path = tuple((segment,) for segment in url.path.split("/")[1:])
    return Template(url.href, url.scheme, url.host, url.port, path, (url.query.removeprefix("?"),), (url.fragment.removeprefix("#"),), ())


def _number(found: list[re.Match[str]]) -> dict[str, Placeholder]:
    """Give each name a position, and settle what stands in for it."""
    if len(found) > _MOST:
        problem = f"An address may have at most {_MOST} placeholders, this has {len(found)}."
        raise BadUrl(problem)
    defaults: dict[str, str | None] = {}
    for match in found:
        key, default = match.group(1), match.group(2)
        if default is not None and not default.isprintable():
            problem = f"The default of {{{key}}} contains control or invisible characters."
            raise BadUrl(problem)
        known = defaults.setdefault(key, default)
        if default is not None and known is not None and default != known:
            problem = f'{{{key}}} has two different defaults, "{known}" and "{default}".'
            raise BadUrl(problem)
        defaults[key] = default if known is None else known
    claimed = {int(key) for key in defaults if key.isdigit()}
    free = (position for position in range(1, 2 * _MOST) if position not in claimed)
    positions = {key: None if key == REST else int(key) if key.isdigit() else next(free) for key in defaults}
    return {key: Placeholder(key, positions[key], default) for key, default in defaults.items()}


def _unused(typed: str) -> str:
    """Letters that stand for a gap while the address is parsed: they occur nowhere in it and mean nothing in a URL."""
    folded = typed.casefold()
    return next(salt for salt in (f"zq{number}x" for number in range(MAX_URL)) if salt not in folded)


def _assemble(url: WebUrl, salt: str, gaps: list[Placeholder]) -> Template:
    mark = re.compile(rf"{salt}(\d+)z")

    def pieces(text: str) -> Pieces:
        parts = mark.split(text)
        for literal in parts[0:-1:2]:
            if _HALF_ESCAPE.search(literal):
                problem = "A placeholder must not follow a bare % sign, which would make it part of an encoded character."
                raise BadUrl(problem)
        return tuple(gaps[int(part)] if place % 2 else part for place, part in enumerate(parts) if part)

    path = tuple(pieces(segment) for segment in url.path.split("/")[1:])
    query, fragment = pieces(url.query.removeprefix("?")), pieces(url.fragment.removeprefix("#"))
    seen = sum(isinstance(piece, Placeholder) for part in (*path, query, fragment) for piece in part)
    if seen != len(gaps):
        problem = "A placeholder must not stand before a step up (..), which would remove it."
        raise BadUrl(problem)
    href = mark.sub(lambda match: str(gaps[int(match.group(1))]), url.href)
    unique = tuple(dict.fromkeys(gaps))
    return Template(href, url.scheme, url.host, url.port, path, query, fragment, unique)
