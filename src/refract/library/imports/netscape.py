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

CHUNK_SIZE = 64 * 1024
MAX_TAG_LENGTH = 512 * 1024
"""Characters of a tag, which may contain an icon."""
_MAX_TEXT_LENGTH = 20_000
_MAX_DEPTH = 32
_END = re.compile(r"""(?>[^>"']+|"[^"]*"|'[^']*')*+>""")
_NAME = re.compile(r"(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']++)))?""")


@dataclass(slots=True)
class NetscapeEntry:
    """A bookmark of a file: attributes by lower-case name, texts, and the folders it is in."""

    attributes: dict[str, str]
    folders: Sequence[str]
    title: str = ""
    description: str = ""
    section: str = ""
    """The heading above its list, which Pocket uses for read and unread."""


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
class NetscapeReader:
    """The bookmarks of a file, in its order."""

    text: TextIO
    _stack: list[_Folder] = field(default_factory=list)
    _opened: _Folder | None = None
    _entry: NetscapeEntry | None = None
    _into: str = ""
    _section: str = ""
    _too_deep: int = 0

    def iter_entries(self) -> Iterator[NetscapeEntry]:
        """Yield the bookmarks. Raises `BrokenFile` where a tag never ends."""
        broken: BrokenFile | None = None
        try:
            for piece in _iter_pieces(self.text):
                if piece.words:
                    self._append_text(unescape_html(piece.words))
                elif (done := self._handle_tag(piece)) is not None:
                    yield done
        except BrokenFile as exc:
            broken = exc
        if self._entry is not None:
            yield self._entry
        if broken is not None:
            raise broken

    def _append_text(self, words: str) -> None:
        if self._into == "folder" and self._opened is not None:
            self._opened.name = (self._opened.name + words)[:200]
        elif self._into == "section":
            self._section = (self._section + words)[:200]
        elif self._entry is not None and self._into == "title":
            self._entry.title = (self._entry.title + words)[:_MAX_TEXT_LENGTH]
        elif self._entry is not None and self._into == "description":
            self._entry.description = (self._entry.description + words)[:_MAX_TEXT_LENGTH]

    def _handle_tag(self, piece: _Piece) -> NetscapeEntry | None:
        """Update the state for a tag; return the bookmark that it completes, if any."""
        tag = piece.tag
        if tag == "br" and self._into == "description":
            self._append_text("\n")
        if tag not in ("a", "h1", "h3", "dl", "dd", "dt"):
            return None
        if piece.closing:
            return self._handle_closing_tag(tag)
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
            attributes = parse_attributes(piece.inside)
            self._entry = NetscapeEntry(attributes, folders, section=self._section)
            self._into = "title"
        elif tag == "h1":
            self._section, self._into = "", "section"
        elif tag == "h3":
            attributes = parse_attributes(piece.inside)
            self._opened, self._into = (
                _Folder(
                    "",
                    bool(
                        attributes.keys() & {"personal_toolbar_folder", "unfiled_bookmarks_folder"}
                    ),
                ),
                "folder",
            )
        elif tag == "dl":
            self._enter_list()
        return done

    def _handle_closing_tag(self, tag: str) -> NetscapeEntry | None:
        if tag in ("a", "h1", "h3"):
            self._into = ""
        elif tag == "dl":
            done, self._entry, self._into = self._entry, None, ""
            if self._too_deep:
                self._too_deep -= 1
            elif self._stack:
                self._stack.pop()
            return done
        return None

    def _enter_list(self) -> None:
        """Enter a list. It belongs to the heading before it; the outermost has none."""
        folder, self._opened = self._opened or _Folder("", special=True), None
        if len(self._stack) < _MAX_DEPTH:
            self._stack.append(folder)
        else:
            self._too_deep += 1


def parse_attributes(inside: str) -> dict[str, str]:
    """Return the attributes of a tag, the first of each name.

    No relevant name has characters other than letters and `_`.
    """
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(inside):
        if name.isascii() and name.isidentifier():
            found.setdefault(name.lower(), unescape_html(double or single or bare))
    return found


def _iter_pieces(text: TextIO) -> Iterator[_Piece]:
    """Yield texts and tags.

    Every character is examined a fixed number of times, however broken the file is.
    """
    buffer, at = "", 0
    while True:
        start = buffer.find("<", at)
        if start < 0:
            if at < len(buffer):
                yield _Piece(words=buffer[at:])
            buffer, at = text.read(CHUNK_SIZE), 0
            if not buffer:
                return
            continue
        if start > at:
            yield _Piece(words=buffer[at:start])
        end = _find_tag_end(buffer, start)
        while end < 0:
            chunk = text.read(max(CHUNK_SIZE, len(buffer) - start))
            if not chunk or len(buffer) - start > MAX_TAG_LENGTH:
                raise BrokenFile("a tag is never closed" if not chunk else "a tag is too long")
            buffer, start = buffer[start:] + chunk, 0
            end = _find_tag_end(buffer, start)
        name = _NAME.match(buffer, start + 1)
        if name is not None:
            inside = buffer[name.end() : end - 1]
            yield _Piece(tag=name[2].lower(), closing=bool(name[1]), inside=inside)
        at = end


def _find_tag_end(buffer: str, start: int) -> int:
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
