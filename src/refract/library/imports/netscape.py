"""Netscape bookmark files, which every browser writes and no standard describes.

They are read from a stream without a tree, so they may be nested to any depth, and no more than one
bookmark is in memory.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from refract.core.text import unescape_html
from refract.records.errors import BrokenFile

CHUNK = 64 * 1024
LONGEST_TAG = 512 * 1024
"""Characters of a tag, which may contain an icon."""
_LONGEST_WORDS = 20_000
_DEEPEST = 32
_END = re.compile(r"""(?>[^>"']+|"[^"]*"|'[^']*')*+>""")
_NAME = re.compile(r"(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']++)))?""")


@dataclass(slots=True)
class Entry:
    """A bookmark of a file: attributes by lower-case name, texts, and the folders it is in."""

    attributes: dict[str, str]
    folders: Sequence[str]
    title: str = ""
    description: str = ""


@dataclass(slots=True)
class _Folder:
    name: str
    special: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text between tags, or a tag."""

    words: str = ""
    tag: str = ""
    closing: bool = False
    inside: str = ""


@dataclass(slots=True)
class Bookmarks:
    """The bookmarks of a file, in its order."""

    text: TextIO
    _stack: list[_Folder] = field(default_factory=list)
    _opened: _Folder | None = None
    _entry: Entry | None = None
    _into: str = ""
    _too_deep: int = 0

    def entries(self) -> Iterator[Entry]:
        """Yield the bookmarks. Raises `BrokenFile` where a tag never ends."""
        broken: BrokenFile | None = None
        try:
            for piece in _pieces(self.text):
                if piece.words:
                    self._take(unescape_html(piece.words))
                elif (done := self._turn(piece)) is not None:
                    yield done
        except BrokenFile as exc:
            broken = exc
        if self._entry is not None:
            yield self._entry
        if broken is not None:
            raise broken

    def _take(self, words: str) -> None:
        if self._into == "folder" and self._opened is not None:
            self._opened.name = (self._opened.name + words)[:200]
        elif self._entry is not None and self._into == "title":
            self._entry.title = (self._entry.title + words)[:_LONGEST_WORDS]
        elif self._entry is not None and self._into == "description":
            self._entry.description = (self._entry.description + words)[:_LONGEST_WORDS]

    def _turn(self, piece: _Piece) -> Entry | None:
        """Update the state for a tag; return the bookmark that it completes, if any."""
        tag = piece.tag
        if tag == "br" and self._into == "description":
            self._take("\n")
        if tag not in ("a", "h3", "dl", "dd", "dt"):
            return None
        if piece.closing:
            return self._closed(tag)
        if tag == "dd":
            self._into = "description"
            return None
        done, self._entry, self._into = self._entry, None, ""
        if tag == "a":
            folders = [
                folder.name.strip()
                for folder in self._stack
                if folder.name.strip() and not folder.special
            ]
            self._entry, self._into = Entry(attributes(piece.inside), folders), "title"
        elif tag == "h3":
            named = attributes(piece.inside)
            self._opened, self._into = (
                _Folder(
                    "", bool(named.keys() & {"personal_toolbar_folder", "unfiled_bookmarks_folder"})
                ),
                "folder",
            )
        elif tag == "dl":
            self._descend()
        return done

    def _closed(self, tag: str) -> Entry | None:
        if tag in ("a", "h3"):
            self._into = ""
        elif tag == "dl":
            done, self._entry, self._into = self._entry, None, ""
            if self._too_deep:
                self._too_deep -= 1
            elif self._stack:
                self._stack.pop()
            return done
        return None

    def _descend(self) -> None:
        """Enter a list. It belongs to the heading before it; the outermost has none."""
        folder, self._opened = self._opened or _Folder("", special=True), None
        if len(self._stack) < _DEEPEST:
            self._stack.append(folder)
        else:
            self._too_deep += 1


def attributes(inside: str) -> dict[str, str]:
    """Return the attributes of a tag, the first of each name.

    No relevant name has characters other than letters and `_`.
    """
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(inside):
        if name.isascii() and name.isidentifier():
            found.setdefault(name.lower(), unescape_html(double or single or bare))
    return found


def _pieces(text: TextIO) -> Iterator[_Piece]:
    """Yield texts and tags.

    Every character is examined a fixed number of times, however broken the file is.
    """
    buffer, at = "", 0
    while True:
        start = buffer.find("<", at)
        if start < 0:
            if at < len(buffer):
                yield _Piece(words=buffer[at:])
            buffer, at = text.read(CHUNK), 0
            if not buffer:
                return
            continue
        if start > at:
            yield _Piece(words=buffer[at:start])
        end = _end_of(buffer, start)
        while end < 0:
            chunk = text.read(max(CHUNK, len(buffer) - start))
            if not chunk or len(buffer) - start > LONGEST_TAG:
                raise BrokenFile("a tag is never closed" if not chunk else "a tag is too long")
            buffer, start = buffer[start:] + chunk, 0
            end = _end_of(buffer, start)
        named = _NAME.match(buffer, start + 1)
        if named is not None:
            yield _Piece(
                tag=named[2].lower(), closing=bool(named[1]), inside=buffer[named.end() : end - 1]
            )
        at = end


def _end_of(buffer: str, start: int) -> int:
    """Return the index after the `>` of a tag, or -1 if it is incomplete.

    Comments and declarations have no quotes.
    """
    if buffer.startswith("<!--", start):
        return buffer.find("-->", start) + 3 if "-->" in buffer[start:] else -1
    if buffer[start + 1 : start + 2] in ("!", "?"):
        return buffer.find(">", start) + 1 or -1
    if start + 1 < len(buffer) and not (buffer[start + 1].isalpha() or buffer[start + 1] == "/"):
        return start + 1  # a less-than sign, not a tag
    found = _END.match(buffer, start + 1)
    return found.end() if found else -1
