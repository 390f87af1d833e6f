"""JSON documents as records: broken, huge and deeply nested ones cost bounded memory and time."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.records.errors import BadRecord, BrokenFile
from refract.records.json_stream import MAX_DEPTH, MAX_RECORD, JsonRecords
from refract.records.source import TextSource
from refract.records.values import check_text

HOLDERS = frozenset({"items", "data"})
CHUNK = 64 * 1024
"""Bytes that ijson reads at once."""


def records_of(text: str | bytes, **options: Any) -> list[Any]:
    return list(reader_of(io.BytesIO(text.encode() if isinstance(text, str) else text), **options))


def reader_of(stream: Any, **options: Any) -> JsonRecords:
    return JsonRecords(TextSource(stream).text, HOLDERS, **options)


def until_broken(records: JsonRecords) -> tuple[list[Any], str]:
    """Return the records before the break, and its reason."""
    found: list[Any] = []
    with pytest.raises(BrokenFile) as broken:
        found.extend(records)
    return found, str(broken.value)


class Repeated(io.RawIOBase):
    """A file too long to be written: a head, a unit many times, a tail."""

    def __init__(self, head: bytes, unit: bytes, times: int, tail: bytes = b"") -> None:
        super().__init__()
        self._pieces = self._cut(head, unit, times, tail)
        self._rest = b""

    @staticmethod
    def _cut(head: bytes, unit: bytes, times: int, tail: bytes) -> Iterator[bytes]:
        yield head
        block = unit * max(1, CHUNK // len(unit))
        whole, rest = divmod(times, max(1, CHUNK // len(unit)))
        for _ in range(whole):
            yield block
        yield unit * rest + tail

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, None)) is not None:
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def peak_of(records: JsonRecords) -> tuple[int, int, str]:
    """Return the number of records, the peak memory to read them, and where they break."""
    count, broken = 0, ""
    tracemalloc.start()
    try:
        for _ in records:
            count += 1
    except BrokenFile as exc:
        broken = str(exc)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return count, peak, broken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", []),
        ("[1, [2], {}]", [1, [2], {}]),
        ("{}", []),
        ('{"items": [{"a": 1}, {"a": 2}]}', [{"a": 1}, {"a": 2}]),
        ('{"other": [1, {"items": [2]}], "items": [3]}', [3]),
        ('{"data": {"items": [1], "data": {"items": [2], "x": {"items": [3]}}}}', [1, 2]),
        ('{"data": {"data": {"data": {"data": {"items": [1]}}}}}', []),
        ('{"items": 5, "data": "x"}', []),
        ('{"links": {"link_1": {"a": 1}, "link_2": 2}, "other": {"link_3": 3}}', [{"a": 1}, 2]),
        (' \n{"items": [1],\r\n\t"items": [2]} \n', [1, 2]),
    ],
)
def test_records_are_found_where_systems_keep_them(text: str, expected: list[Any]) -> None:
    assert records_of(text, value_holders={"links"}) == expected


def test_values_have_the_types_that_json_gives_them() -> None:
    numbers = '"i": 9223372036854775807, "m": -9223372036854775807, "f": 1.5, "e": 1e5'
    text = f'[{{"n": null, "t": true, {numbers}, "s": "\\u00e9\\ud83d\\ude00\\n\\\\u"}}]'

    (record,) = records_of(text)

    assert record == json.loads(text)[0]
    assert {name: type(value) for name, value in record.items()} == {
        name: type(value) for name, value in json.loads(text)[0].items()
    }


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("", []),
        ("5", []),
        ('"items"', []),
        ("hello", []),
        ("{", []),
        ('{"items": [1, 2', [1, 2]),
        ('{"items": [1, 2]', [1, 2]),
        ('[{"a": 1}, {"b', [{"a": 1}]),
        ('[{"a": 1}, {"b": }]', [{"a": 1}]),
        ("[1, 2] [3]", [1, 2]),
        ("[1, 2,]", [1, 2]),
        ("[1, NaN]", [1]),
        ('[1, "a\nb"]', [1]),
        ("[1, -]", [1]),
        ("[1, 9223372036854775808]", [1]),
        ("[1, " + "1" * 5000 + "]", [1]),
        ("[1, 1e400]", [1]),
        ("[1, 1e" + "9" * 30 + "]", [1]),
        ('[1, "\\x"]', [1]),
        (b'[1, \xff, "x"]', [1]),
        (b'[1, "\\', [1]),
        (b'[1, "\\ud83d', [1]),
    ],
)
def test_a_broken_document_keeps_what_came_before(text: str | bytes, before: list[Any]) -> None:
    raw = text.encode() if isinstance(text, str) else text

    found, reason = until_broken(reader_of(io.BytesIO(raw)))

    assert found == before
    assert reason
    assert "\n" not in reason


@pytest.mark.parametrize("unit", ["[", '{"items":', '{"a":', '[{"a":'])
@pytest.mark.parametrize("head", ["", '{"items": [{"good": 1}, ', '{"other": '])
def test_nesting_has_a_limit(head: str, unit: str) -> None:
    found, reason = until_broken(reader_of(io.BytesIO((head + unit * 100_000).encode())))

    assert found == ([{"good": 1}] if "good" in head else [])
    assert reason in ("it is nested too deeply", "it is neither a list nor an object")


def test_nesting_up_to_the_limit_is_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH

    assert records_of(f'[{deep}, "next"]')[1] == "next"
    assert records_of(f'{{"other": {deep}, "items": [1]}}') == [1]


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        (b'[{"a": 1}, {"a": "', b"x"),
        (b'[{"a": 1}, {"a": "', b"\\\\"),
        (b'[{"a": 1}, {"a": "', b"\\u00e4"),
        (b'[{"a": 1}, {"a": [', b'{"b": "c"}, '),
        (b'[{"a": 1}, {"a": [', b"[], "),
        (b'[{"a": 1}, {"a": ', b"1"),
        (b'{"items": [{"a": 1}], "other": "', b"x"),
    ],
)
def test_a_record_without_an_end_is_given_up(head: bytes, unit: bytes) -> None:
    """Nothing of a gigabyte is read after the limit, and no more than the record is in memory."""
    gigabyte = Repeated(head, unit, 1024**3 // len(unit))

    found, reason = until_broken(reader_of(gigabyte))

    assert found == [{"a": 1}]
    assert reason == "a record is too long or broken"


def test_the_limit_of_a_record_is_a_choice() -> None:
    text = json.dumps([{"a": "x" * (2 * MAX_RECORD)}, {"b": 1}])

    assert len(records_of(text, max_record=3 * MAX_RECORD)) == 2
    assert until_broken(reader_of(io.BytesIO(text.encode())))[0] == []


@pytest.mark.parametrize(
    ("head", "unit", "times", "tail", "count"),
    [
        (b'{"items": [0', b', {"a": "' + b"x" * 1000 + b'"}', 10_000, b"]}", 10_001),
        (b'{"other": [0', b', {"items": ["' + b"x" * 1000 + b'"]}', 10_000, b'], "items": [1]}', 1),
        (b"[1", b" " * 1000, 10_000, b"]", 1),
        (b'[{"a": ', b"\n" * 1000, 10_000, b"1}]", 1),
        (b'{"links": {"x": 0', b', "link": {"a": "' + b"x" * 1000 + b'"}', 10_000, b"}}", 10_001),
    ],
)
def test_no_more_than_a_record_is_in_memory(
    head: bytes, unit: bytes, times: int, tail: bytes, count: int
) -> None:
    """Ten megabytes in chunks of 64 kB, which the events of its values take several times."""
    found, peak, broken = peak_of(
        reader_of(Repeated(head, unit, times, tail), value_holders={"links"})
    )

    assert (found, broken) == (count, "")
    assert peak < 3_000_000


@pytest.mark.parametrize("size", [*range(CHUNK - 16, CHUNK + 16)])
def test_escapes_across_chunks_are_whole(size: int) -> None:
    text = '["' + "x" * (size - 20) + r"\\\ud83d\ude00\\ud800\u00e9" + '"]'

    assert records_of(text) == json.loads(text)


@pytest.mark.parametrize(
    "lone",
    [r"\ud800", r"\udc00", r"\ud800\u0041", r"\udc00\ud800", r"\uD83D\uD83D\uDE00", r"\\\ud800"],
)
def test_half_a_character_costs_its_record_alone(lone: str) -> None:
    """The C back end would replace it by another character, or fail on the whole file."""
    half, good, broken = records_of(
        f'[{{"a": "x{lone}y"}}, {{"a": "fine \\\\ud800"}}, {{"a": "{lone}"}}]'
    )

    assert good == {"a": "fine \\ud800"}
    check_text(good)
    for record in (half, broken):
        with pytest.raises(BadRecord, match="Not valid text"):
            check_text(record)


def test_invalid_bytes_cost_their_record_alone() -> None:
    broken, good = records_of(b'[{"a": "\xff\xfe"}, {"a": "\xc3\xa9"}]')

    assert good == {"a": "é"}
    with pytest.raises(BadRecord, match="Not valid text"):
        check_text(broken)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63) + 1, 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.booleans(),
)
def test_whatever_json_writes_is_read(value: Any, ascii_only: bool) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    expected = json.loads(text.decode("utf-8", "surrogatepass"))
    found = records_of(text)

    try:
        check_text(json.loads(json.dumps(expected)))
    except BadRecord:
        return  # refused as a row, and never changed into something else
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for text in (data, b'{"items": [' + data, b'[{"a": "' + data + b'"}]'):
        try:
            records_of(text)
        except BrokenFile:
            continue
