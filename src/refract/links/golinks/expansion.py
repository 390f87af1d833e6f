"""Expansion of go links: a destination, the extra path and the query of the request.

- Without placeholders the extra path is appended to the destination's path, before its query.
- With placeholders every segment must have a place. The link does not match if one is missing
  that has no default, or if there are more segments than places and no `{*}`.
- Empty segments (`//`) are dropped. A trailing slash is kept where the extra path or `{*}` ends
  the path.
- A value is one segment: an encoded slash (`%2F`) stays encoded. Dot segments (`.`, `..`, also
  beside encoded slashes and backslashes) and control characters are rejected, because browsers
  and servers resolve them differently.
- Values are inserted once and not parsed again, so a value like `{2}` stays as it is.
- The query is forwarded only with `forward_query`; its values replace those of the destination
  with the same key.
- Scheme, host and port are always the destination's; the result is parsed again to verify it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, unquote_plus

from ada_url import URL

from refract.core.phrases import Phrase
from refract.core.urls import MAX_URL_LENGTH
from refract.links.golinks.template import (
    REST_KEY,
    DestinationTemplate,
    Placeholder,
    TemplatePiece,
    TemplatePieces,
)

MAX_HREF = 3 * MAX_URL_LENGTH
"""The maximum length of a `Location`, and of a destination once it is encoded."""

_PATH_SAFE = "!$&'()*+,;=:@"
_QUERY_SAFE = "!$()*+,;:@/?=%"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SLASHES = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class ExpansionFailure:
    """Why a path does not fit a link, as a sentence for people."""

    reason: str


class _ExpansionRefused(Exception):
    """Carries the reason out of an expansion."""


def split_extra_path(raw: str) -> list[str]:
    """Return the segments of a raw extra path (`a/b%20c`), each decoded once.

    Bytes that are not UTF-8 are kept.
    """
    return [unquote(segment, errors="surrogateescape") for segment in raw.split("/")] if raw else []


def expand_template(
    template: DestinationTemplate,
    segments: Sequence[str] = (),
    query: str = "",
    *,
    forward_query: bool = False,
) -> str | ExpansionFailure:
    """Return the `Location` of a request: ASCII, at the destination's own scheme, host and port."""
    try:
        return _expand_template(template, segments, query if forward_query else "")
    except _ExpansionRefused as exc:
        return ExpansionFailure(str(exc))
    except UnicodeEncodeError:
        return ExpansionFailure(Phrase("The path or query isn't valid text."))


def _expand_template(template: DestinationTemplate, segments: Sequence[str], query: str) -> str:
    filled = [segment for segment in segments if segment]
    if any(_CONTROL.search(segment) for segment in filled):
        raise _ExpansionRefused(Phrase("The path contains control characters."))
    if not template.placeholders and not filled and not query:
        return template.href
    slash = "/" if filled and not segments[-1] else ""
    if template.placeholders:
        values = _PathValues(template, filled, slash)
        path = values.path()
        own, fragment = values.text(template.query), values.text(template.fragment)
    else:
        path = _append_path(template, filled, slash)
        own, fragment = _join_literals(template.query), _join_literals(template.fragment)
    merged = _merge_query(own, query) if query else own
    href = f"{template.origin}{path}"
    href += f"?{merged}" if merged else ""
    href += f"#{fragment}" if fragment else ""
    _verify_href(template, href)
    return href


class _PathValues:
    """The values that one request gives to the placeholders of a template."""

    def __init__(self, template: DestinationTemplate, filled: list[str], slash: str) -> None:
        last = template.last_position
        if len(filled) > last and not template.has_rest:
            raise _ExpansionRefused(
                Phrase(
                    "The path has {count} values, but this link takes {limit}.",
                    limit=last,
                    count=len(filled),
                )
            )
        self._template = template
        self._segments = filled
        self._rest = filled[last:]
        self._slash = slash

    def path(self) -> str:
        """Return the path. A segment of empty placeholders is dropped, so that no `//` results."""
        built: list[str] = []
        for place, segment in enumerate(self._template.path, start=1):
            end = place == len(self._template.path)
            text = self.text(segment, safe=_PATH_SAFE)
            if (
                end
                and segment
                and isinstance(segment[-1], Placeholder)
                and segment[-1].key == REST_KEY
                and self._rest
            ):
                text += self._slash
            gaps = [piece for piece in segment if isinstance(piece, Placeholder)]
            if gaps:
                _reject_dot_segments(text)
            if text or end or not gaps:
                built.append(text)
        return "/" + "/".join(built)

    def text(self, pieces: TemplatePieces, *, safe: str = "") -> str:
        return "".join(self._fill_piece(piece, safe) for piece in pieces)

    def _fill_piece(self, piece: TemplatePiece, safe: str) -> str:
        if isinstance(piece, str):
            return piece
        if piece.position is None:
            rest = self._rest or [part for part in (piece.default or "").split("/") if part]
            return "/".join(_encode_value(part, safe) for part in rest)
        if piece.position <= len(self._segments):
            return _encode_value(self._segments[piece.position - 1], safe)
        if piece.default is None:
            raise _ExpansionRefused(
                Phrase("This link needs a value for {placeholder}.", placeholder=str(piece))
            )
        return _encode_value(piece.default, safe)


def _append_path(template: DestinationTemplate, filled: Iterable[str], slash: str) -> str:
    own = "/" + "/".join(_join_literals(segment) for segment in template.path)
    parts = [_encode_value(part, _PATH_SAFE) for part in filled]
    for part in parts:
        _reject_dot_segments(part)
    if not parts:
        return own
    return f"{own.removesuffix('/')}/{'/'.join(parts)}{slash}"


def _join_literals(pieces: TemplatePieces) -> str:
    return "".join(str(piece) for piece in pieces)


def _encode_value(value: str, safe: str) -> str:
    return quote(value, safe=safe, errors="surrogateescape")


def _reject_dot_segments(text: str) -> None:
    if any(part in (".", "..") for part in _SLASHES.split(unquote(text))):
        raise _ExpansionRefused(Phrase('The path can\'t contain "." or "..".'))


def _merge_query(own: str, asked: str) -> str:
    """Return the destination's pairs with the requested values.

    They replace a key at its first place; new keys are appended.
    """
    wanted: dict[str, list[str]] = {}
    for pair in asked.split("&"):
        if pair:
            wanted.setdefault(_pair_key(pair), []).append(
                quote(pair, safe=_QUERY_SAFE, errors="surrogateescape")
            )
    merged: list[str] = []
    placed: set[str] = set()
    for pair in filter(None, own.split("&")):
        key = _pair_key(pair)
        if key not in wanted:
            merged.append(pair)
        elif key not in placed:
            placed.add(key)
            merged.extend(wanted[key])
    for key, pairs in wanted.items():
        if key not in placed:
            merged.extend(pairs)
    return "&".join(merged)


def _pair_key(pair: str) -> str:
    return unquote_plus(pair.partition("=")[0], errors="surrogateescape")


def _verify_href(template: DestinationTemplate, href: str) -> None:
    if len(href) > MAX_HREF:
        raise _ExpansionRefused(
            Phrase("The URL would be too long. The limit is {limit} characters.", limit=MAX_HREF)
        )
    try:
        url = URL(href)
    except ValueError:
        url = None
    if (
        url is None
        or url.href != href
        or url.host != template.origin.partition("://")[2]
        or url.protocol != f"{template.scheme}:"
    ):
        raise _ExpansionRefused(Phrase("These values don't make a valid URL."))
