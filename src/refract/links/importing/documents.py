"""Records of a JSON document, taken out of its stream one by one: the document itself is never in memory."""

import json
from collections.abc import Collection, Iterator
from typing import Any, TextIO

_CHUNK = 64 * 1024
_LONGEST_VALUE = 1024 * 1024
_SPACE = " \t\r\n"
_DEEPEST = 3
HOLDERS = frozenset({"links", "data", "items", "shortUrls", "short_urls"})
"""Where the systems we know keep their records: a list, or an object whose values they are."""


class BrokenDocument(Exception):
    """From where on a document cannot be read; the message is for people."""


class Document:
    """The records of a JSON text: the elements of its list, or of the lists inside its object that have one of these names."""

    def __init__(self, text: TextIO, holders: Collection[str] = HOLDERS, longest: int = _LONGEST_VALUE) -> None:
        self._text = text
        self._holders = holders
        self._longest = longest
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def records(self) -> Iterator[Any]:
        """Raises `BrokenDocument` where it can go no further; what came before is good."""
        if self._peek() == "[":
            yield from self._elements()
        elif self._peek() == "{":
            yield from self._within(1)
        else:
            self._fail("it is neither a list nor an object")
        if self._peek():
            self._fail("there is more text behind its end")

    def _within(self, depth: int) -> Iterator[Any]:
        for key in self._keys():
            start = self._peek()
            if key in self._holders and start == "[":
                yield from self._elements()
            elif key == "links" and start == "{":
                yield from (self._value() for _ in self._keys())
            elif key in self._holders and start == "{" and depth < _DEEPEST:
                yield from self._within(depth + 1)
            else:
                self._value()

    def _elements(self) -> Iterator[Any]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            yield self._value()
            if self._expect(",]") == "]":
                return

    def _keys(self) -> Iterator[str]:
        """The keys of an object; whoever asks reads the value before the next."""
        self._expect("{")
        if self._peek() == "}":
            self._expect("}")
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                self._fail("a key of an object is no text")
            self._expect(":")
            yield key
            if self._expect(",}") == "}":
                return

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError:
                self._fail("it is nested too deeply")
            except json.JSONDecodeError as wrong:
                if self._ended or len(self._buffer) - self._at > self._longest:
                    self._fail(wrong.msg.lower() if self._ended else "one of its records is too long or broken")
            else:
                if end < len(self._buffer) or self._ended:  # a number at the very end may go on
                    self._at = end
                    return value
            self._more(len(self._buffer) - self._at)

    def _peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self._at < len(self._buffer):
                if self._buffer[self._at] not in _SPACE:
                    return self._buffer[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._more(0)

    def _expect(self, any_of: str) -> str:
        found = self._peek()
        if not found or found not in any_of:
            self._fail(f"{' or '.join(any_of)} was expected" if found else "it ends too early")
        self._at += 1
        return found

    def _more(self, kept: int) -> None:
        chunk = self._text.read(max(_CHUNK, kept))
        self._ended = not chunk
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0

    def _fail(self, why: str) -> Any:
        raise BrokenDocument(why)
