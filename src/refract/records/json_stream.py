"""Records of a JSON document, read from its stream one by one: it is never in memory as a whole.

ijson's C back end parses it. Its Python back end is not used: where texts cross the pieces that it
reads, it keeps everything before them. An error inside a value (a number too large for `int`, half
a character) leaves the C back end in an undefined state. So numbers are 64 bits wide (`use_float`),
and `_Feed` replaces half characters.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, TextIO

from ijson.backends import yajl2_c
from ijson.common import JSONError, ObjectBuilder

from refract.records.errors import BrokenFile
from refract.records.values import INVALID_TEXT

MAX_RECORD = 1024 * 1024
"""Characters of one record, or of one text that is not part of a record."""

MAX_DEPTH = 100
_MAX_HOLDER_DEPTH = 3
_STARTS = frozenset({"start_map", "start_array"})
_ENDS = frozenset({"end_map", "end_array"})


class JsonRecords:
    """The records of a JSON text: the elements of its list, or of lists inside its object.

    `holders` are keys whose list holds records, or whose object holds other holders.
    `value_holders` are keys whose object holds records as its values.
    """

    def __init__(
        self,
        text: TextIO,
        holders: Collection[str],
        value_holders: Collection[str] = (),
        max_record: int = MAX_RECORD,
    ) -> None:
        self._holders = holders
        self._value_holders = value_holders
        self._feed = _Feed(text, max_record)
        self._events: Iterator[tuple[str, Any]] = yajl2_c.basic_parse(self._feed, use_float=True)

    def __iter__(self) -> Iterator[Any]:
        """Yield the records.

        Raises `BrokenFile` where the text is not JSON any more, is too long or nested too deeply.
        """
        try:
            event, _ = next(self._events)
            if event == "start_array":
                yield from self._iter_elements()
            elif event == "start_map":
                yield from self._iter_members(1)
            else:
                raise BrokenFile("it is neither a list nor an object")
            for _ in self._events:  # the parser raises an error if text follows
                pass
        except JSONError as exc:
            raise BrokenFile(_format_reason(exc)) from exc

    def _iter_members(self, depth: int) -> Iterator[Any]:
        for event, key in self._events:
            if event == "end_map":
                return
            kind, _ = next(self._events)
            if key in self._holders and kind == "start_array":
                yield from self._iter_elements()
            elif key in self._value_holders and kind == "start_map":
                yield from self._iter_values()
            elif key in self._holders and kind == "start_map" and depth < _MAX_HOLDER_DEPTH:
                yield from self._iter_members(depth + 1)
            else:
                self._skip_value(kind)

    def _iter_elements(self) -> Iterator[Any]:
        for event, value in self._events:
            if event == "end_array":
                return
            yield self._build_record(event, value)

    def _iter_values(self) -> Iterator[Any]:
        for event, _ in self._events:
            if event == "end_map":
                return
            yield self._build_record(*next(self._events))

    def _build_record(self, event: str, value: Any) -> Any:
        """Return the record that begins with this event."""
        self._feed.begin_record()
        builder, depth = ObjectBuilder(), 0
        while True:
            depth = _update_depth(depth, event)
            builder.event(event, value)
            if not depth:
                return builder.value
            event, value = next(self._events)

    def _skip_value(self, event: str) -> None:
        """Read a value that holds no records without keeping it."""
        depth = 0
        while True:
            self._feed.begin_record()
            depth = _update_depth(depth, event)
            if not depth:
                return
            event, _ = next(self._events)


class _Feed:
    """A text as bytes for the parser, which stops when a record grows too long.

    Lone surrogates, written as escapes or left by invalid bytes, become a character that
    `values.check_text` refuses: the C parser would turn them into others or fail on the whole file,
    where only one record should be refused.
    """

    _ESCAPE = re.compile(
        r"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
        r"|(?P<unfinished>(?:u[0-9a-fA-F]{0,3}"
        r"|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)?\Z)"
        r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
        re.DOTALL,
    )
    _SURROGATES = re.compile("[\ud800-\udfff]")

    def __init__(self, text: TextIO, max_record: int) -> None:
        self._text = text
        self._max_record = max_record
        self._since_begin = 0
        self._unfinished = ""

    def begin_record(self) -> None:
        self._since_begin = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes, empty at the end.

        Raises `BrokenFile` if the current record is too long.
        """
        if not size:
            return b""
        if self._since_begin > self._max_record:
            raise BrokenFile("a record is too long or broken")
        while chunk := self._text.read(size):
            self._since_begin += 0 if chunk.isspace() else len(chunk)
            chunk, self._unfinished = self._unfinished + chunk, ""
            if passed := self._ESCAPE.sub(self._pass, chunk) if "\\" in chunk else chunk:
                return self._encode(passed)
        rest, self._unfinished = self._unfinished, ""
        return rest.encode()

    def _pass(self, found: re.Match[str]) -> str:
        if found["lone"]:
            return INVALID_TEXT
        if found["unfinished"] is not None:
            self._unfinished = found[0]
            return ""
        return found[0]

    def _encode(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError:
            return self._SURROGATES.sub(INVALID_TEXT, text).encode()


def _update_depth(depth: int, event: str) -> int:
    if event in _STARTS:
        if depth == MAX_DEPTH:
            raise BrokenFile("it is nested too deeply")
        return depth + 1
    return depth - 1 if event in _ENDS else depth


def _format_reason(exc: JSONError) -> str:
    """Return the first line of the parser's message; the rest marks the place."""
    message = exc.args[0]
    first = (
        message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    ).partition("\n")[0]
    return first.removeprefix("parse error: ").removeprefix("lexical error: ").rstrip(".")
