"""Title and meta elements of an HTML page, by a tokenizer with linear cost.

A full parser builds a tree, which hostile nesting makes quadratic. Reading stops at `</head>`,
`<body` or `<frameset`, or after `MAX_MARKUP` characters; the content of scripts and styles is
skipped and not counted. Pure.
"""

import re
from dataclasses import dataclass, field

from refract.core.text import unescape_html

MAX_MARKUP = 64 * 1024
MAX_OPEN = 256
MAX_ATTRIBUTES = 100
MAX_VALUE = 8 * 1024
"""Characters of a title or an attribute that are kept."""

_NAME = re.compile(r"[a-zA-Z][^\s/>]{0,31}")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)"""
    r"""(?:\s*+=\s*+(?:"([^"]*+)("?+)|'([^']*+)('?+)|([^\s>]*+)))?+)"""
)
_VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
_IMPLIED = frozenset({
    "colgroup", "dd", "dt", "head", "html", "li", "optgroup", "option", "p", "rb", "rp", "rt",
    "rtc", "tbody", "td", "tfoot", "th", "thead", "tr",
})  # fmt: skip
"""Elements whose end tag may be omitted: they do not nest without another element in between."""

_RAW = frozenset({
    "iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp",
})  # fmt: skip
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_NOT_COUNTED = frozenset({"script", "style"})
_FOREIGN = frozenset({"svg", "math", "template"})
"""Elements that have their own titles."""

_LAST = frozenset({"body", "frameset", "plaintext"})


class PageTooDeep(Exception):
    """More elements are open than in any real head."""


class TooManyAttributes(Exception):
    """A tag has more attributes than any real one."""


@dataclass(slots=True)
class PageHead:
    """The first title, and the attributes of each meta element by lower-case name."""

    title: str | None = None
    metas: list[dict[str, str]] = field(default_factory=list)


def parse_head(html: str) -> PageHead:
    """Return title and meta elements.

    Raises `PageTooDeep` or `TooManyAttributes` for a page that only an attacker would write.
    """
    return _HeadParser(html).parse()


class _HeadParser:
    def __init__(self, html: str) -> None:
        self._html = html
        self._found = PageHead()
        self._open: dict[str, int] = {}
        self._depth = 0
        self._skipped = 0

    def parse(self) -> PageHead:
        html, at = self._html, 0
        while 0 <= (at := html.find("<", at)) < MAX_MARKUP + self._skipped:
            after = html[at + 1 : at + 2]
            if after.isalpha():
                at = self._parse_start_tag(at + 1)
            elif after == "/":
                at = self._parse_end_tag(at + 2)
            elif html.startswith("<!--", at):
                at = _find_end(html, "-->", at + 2)  # `<!-->` is a whole comment
            elif after in ("!", "?"):
                at = _find_end(html, ">", at)
            else:
                at += 1
            if at < 0:
                break
        return self._found

    def _parse_start_tag(self, at: int) -> int:
        """Parse the tag whose name begins here; return where to continue, or -1 at the end."""
        name = self._parse_name(at)
        if name in _LAST:
            return -1
        attributes, at = self._parse_attributes(at + len(name))
        if at < 0:
            return -1
        own = not any(self._open.get(foreign) for foreign in _FOREIGN)
        if name == "meta" and own:
            self._found.metas.append(attributes)
        if name in _RAW:
            return self._skip_raw_text(name, at, own=own)
        if name not in _VOID and name not in _IMPLIED:
            self._open[name] = self._open.get(name, 0) + 1
            self._depth += 1
            if self._depth > MAX_OPEN:
                raise PageTooDeep
        return at

    def _parse_end_tag(self, at: int) -> int:
        name = self._parse_name(at)
        if name == "head":
            return -1
        if self._open.get(name):
            self._open[name] -= 1
            self._depth -= 1
        return _find_end(self._html, ">", at)

    def _skip_raw_text(self, name: str, at: int, *, own: bool) -> int:
        """Skip the text of an element that contains only text; keep the first title of the page."""
        end = _RAW_END[name].search(self._html, at)
        stop = end.start() if end is not None else len(self._html)
        if name == "title" and own and self._found.title is None:
            self._found.title = unescape_html(self._html[at : min(stop, at + MAX_VALUE)])
        if name in _NOT_COUNTED:
            self._skipped += stop - at
        return _find_end(self._html, ">", stop) if end is not None else -1

    def _parse_attributes(self, at: int) -> tuple[dict[str, str], int]:
        """Return attributes, the first of each name, and the end of the tag, -1 if it has none."""
        found: dict[str, str] = {}
        for _ in range(MAX_ATTRIBUTES + 1):
            match = _ATTRIBUTE.match(self._html, at)
            if match is None:
                return found, -1
            at = match.end()
            closing, name, double, double_end, single, single_end, bare = match.groups()
            if closing:
                return found, at
            if (double is not None and not double_end) or (single is not None and not single_end):
                return found, -1
            value = double or single or bare or ""
            found.setdefault(name[:64].lower(), unescape_html(value[:MAX_VALUE]))
        raise TooManyAttributes

    def _parse_name(self, at: int) -> str:
        match = _NAME.match(self._html, at)
        return match[0].lower() if match is not None else ""


def _find_end(html: str, sign: str, at: int) -> int:
    found = html.find(sign, at)
    return found + len(sign) if found >= 0 else -1
