"""The compiled part of ingest and the Python one make the same of the same bytes."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refract.clicks.compiled import MODULE_NAME
from refract.clicks.ingest import batch as gathering
from refract.clicks.ingest.agents import UserAgentParser
from refract.clicks.ingest.batch import EventGathererClass, PythonEventGatherer, RollupDelta
from refract.clicks.ingest.event_rows import (
    EVENT_COLUMNS,
    build_shape,
    format_second,
    join_by_target,
)
from refract.clicks.ingest.facts import FactsExtractor
from refract.clicks.ingest.places import PlaceLookup
from refract.clicks.rollups import breakdowns, sketches
from refract.clicks.rollups.top_values import sum_breakdowns
from refract.clicks.spool import format as frame_format
from refract.clicks.spool.format import (
    LINK_CLICK,
    PREFETCH,
    PRIVATE,
    encode_frame,
    read_frame_length,
)
from refract.core.clock import SystemClock
from refract.core.compiled import load_compiled
from refract.core.settings.model import Dialect

NOW = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgresql", "mysql")
CHROME = b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36"


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    module, reason = load_compiled(MODULE_NAME)
    if module is None:
        pytest.skip(f"ingest is not compiled: {reason} (python3 -m tools.extension)")
    return module


@pytest.fixture(scope="module")
def extractor() -> FactsExtractor:
    return FactsExtractor(UserAgentParser(), PlaceLookup(None, SystemClock()))


def build_frame(
    kind: int, flags: int, target: int, time_ns: int, texts: tuple[bytes, ...]
) -> bytes:
    """Return a frame with a right checksum that no writer of ours need have written."""
    network, agent, referrer, campaign = texts
    body = frame_format._pack_header(
        frame_format.MIN_FRAME_BYTES + sum(map(len, texts)),
        kind,
        flags,
        target,
        time_ns,
        *map(len, texts),
    )
    body += network + agent + referrer + campaign
    return body + crc32(body).to_bytes(4, "little")


TIMES = st.one_of(
    st.integers(NOW - 3 * 86_400_000_000, NOW + 120_000_000).map(lambda at: at * 1000),
    st.sampled_from([0, 1, 999, -1, -(2**63), 2**63 - 1, NOW * 1000 + 60_000_000_999]),
)
FRAMES = st.builds(
    build_frame,
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 0, 0, PREFETCH, PRIVATE, PREFETCH | PRIVATE, 4, 255]),
    st.one_of(st.integers(1, 5), st.sampled_from([2**63 - 1, -(2**63), 0])),
    TIMES,
    st.tuples(
        st.one_of(
            st.sampled_from([b"", b"\x08\x08\x08", b" \x01\x04\x80\0\0"]),
            st.binary(max_size=6),
            st.binary(min_size=7, max_size=255),
        ),
        st.one_of(
            st.sampled_from([CHROME, CHROME * 3, b"curl/8.5.0", b"", b"x" * 122, b"x" * 123]),
            st.binary(max_size=300),
        ),
        st.one_of(
            st.sampled_from([b"", b"https://a.example/b", b"nonsense"]), st.binary(max_size=40)
        ),
        st.one_of(
            st.sampled_from([b"", b"", b"utm_campaign=%27%5C&utm_source=a", b"utm_campaign=a%00"]),
            st.binary(max_size=40),
        ),
    ),
)
NODES = st.sampled_from(["", "one", "Knoten 'ü' \\ %s", "x" * 64])


@given(
    st.lists(FRAMES, max_size=5).map(b"".join),
    st.integers(0, 2000),
    st.one_of(st.none(), st.tuples(st.integers(0, 10**6), st.integers(1, 255))),
    st.integers(0, 6),
)
def test_damaged_frames_are_found_at_the_same_place(
    compiled: ModuleType, data: bytes, cut: int, flip: tuple[int, int] | None, limit: int
) -> None:
    damaged = bytearray(data)
    if flip is not None and damaged:
        damaged[flip[0] % len(damaged)] ^= flip[1]
    seen = bytes(damaged[: len(damaged) - cut] if cut < len(damaged) else damaged)

    assert compiled.scan_frames(seen, limit) == frame_format.scan_frames(seen, limit)


@given(st.binary(max_size=200))
@example(b"\x1f\x00" * 20)
def test_any_bytes_are_scanned_alike(compiled: ModuleType, data: bytes) -> None:
    assert compiled.scan_frames(data, 9) == frame_format.scan_frames(data, 9)


def describe(tally: RollupDelta) -> dict[str, Any]:
    return {name: getattr(tally, name) for name in RollupDelta.__slots__}


def gather(
    create: EventGathererClass,
    extractor: FactsExtractor,
    dialect: Dialect,
    batches: list[bytes],
    node: str,
    turn: int,
) -> tuple[Any, ...]:
    """Return rows, sums and shared facts of batches of one run."""
    extractor.reset()
    gatherer, rows = create(extractor, format_second), list[Any]()
    for segment, frames in enumerate(batches, 1):
        salts = {day: day.to_bytes(8, "big") * 4 for day in gathering._collect_days(frames, NOW)}
        shape = build_shape(dialect, 2**63 - 1, segment, node)
        gatherer.begin_batch(shape, frames, 16 * segment, NOW, salts)
        while gatherer.add_clicks(rows, turn):
            pass
    tallies = {slot: describe(tally) for slot, tally in gatherer.tallies.items()}
    written = rows if dialect == "sqlite" else b"".join(rows)
    return written, tallies, list(tallies), dict(extractor.unsaved)


@given(st.lists(st.lists(FRAMES, max_size=8).map(b"".join), max_size=3), NODES, st.integers(1, 9))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_rows_and_sums_are_the_same(
    compiled: ModuleType,
    extractor: FactsExtractor,
    dialect: Dialect,
    batches: list[bytes],
    node: str,
    turn: int,
) -> None:
    expected = gather(PythonEventGatherer, extractor, dialect, batches, node, 1)

    assert gather(compiled.EventGatherer, extractor, dialect, batches, node, turn) == expected
    for frames in batches:
        days = gathering._collect_days(frames, NOW)
        assert compiled.collect_days(frames, NOW) == days


COUNTS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.integers(0, 2**62), max_size=9
)


@given(COUNTS)
@example({"dü\x7f\u2028 😀": 10**17, "a": 0})
@example({'quoted " and \\': 1})
def test_breakdowns_are_stored_in_the_same_bytes(
    compiled: ModuleType, counts: dict[str, int]
) -> None:
    expected = breakdowns._encode_json(counts).encode()

    assert (compiled.encode_json(counts) or expected) == expected
    assert (compiled.decode_json(expected) or counts) == counts


def test_usual_breakdowns_are_encoded_and_decoded_by_compiled_code(compiled: ModuleType) -> None:
    counts = {"amobile": 3, "csite.example": 10**12, "dDE": 1}

    data = compiled.encode_json(counts)

    assert data == b'{"amobile":3,"csite.example":1000000000000,"dDE":1}'
    assert compiled.decode_json(data) == counts


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"{}", b'{"a":1', b'{"a":1,}', b'{"a":1}}', b'{"a": 1}', b'{"a":-1}', b'{"a":}',
        b'{"a\\"":1}', b'{"a":1.5}', b'["a",1]', b'{"a":12345678901234567890}', b'{"a":1,"b',
    ],
)  # fmt: skip
def test_other_json_is_left_to_the_json_module(compiled: ModuleType, data: bytes) -> None:
    assert compiled.decode_json(data) is None


@given(st.sets(st.binary(min_size=5, max_size=5), max_size=300))
def test_visitors_are_stored_in_the_same_bytes(compiled: ModuleType, visitors: set[bytes]) -> None:
    assert compiled.encode_visitors(visitors) == sketches._encode_visitors(visitors)


@pytest.mark.parametrize("visitor", [b"", b"four", b"sixsix", "guest"])
def test_hashes_of_other_lengths_are_refused(compiled: ModuleType, visitor: Any) -> None:
    with pytest.raises(ValueError, match="five bytes"):
        compiled.encode_visitors({b"guest", visitor})


@given(COUNTS, COUNTS)
def test_breakdowns_are_added_alike(
    compiled: ModuleType, into: dict[str, int], more: dict[str, int]
) -> None:
    expected, found, unchanged = dict(into), dict(into), dict(more)

    breakdowns._add_counts(expected, more)
    compiled.add_counts(found, more)

    assert list(found.items()) == list(expected.items())
    assert more == unchanged


def list_gatherers() -> Iterator[EventGathererClass]:
    yield PythonEventGatherer
    module, _ = load_compiled(MODULE_NAME)
    if module is not None:
        yield module.EventGatherer


def test_a_click_is_read_as_it_was_written(extractor: FactsExtractor) -> None:
    frame = encode_frame(LINK_CLICK, 42, NOW * 1000, 0, b"\x08\x08\x08", CHROME, b"", b"")
    for create in list_gatherers():
        rows, tallies, *_ = gather(create, extractor, "sqlite", [frame], "one", 9)

        row = dict(zip(EVENT_COLUMNS, rows, strict=True))
        assert (row["place"], row["at"], row["target_id"]) == (16, "2026-06-01 12:00:00.000000", 42)
        assert (row["bot"], row["private"], row["network"]) == (0, 0, "8.8.8.0")
        (tally,) = tallies.values()
        assert (tally["people"], tally["last"], len(tally["visitors"])) == (1, NOW, 1)
        assert read_frame_length(frame, 0) == len(frame)


LINKS = st.dictionaries(st.integers(0, 9) | st.integers(0, 2**63 - 1), st.integers(1, 2**40))


@given(st.lists(LINKS, max_size=9), st.integers(0, 30))
def test_links_of_groups_are_ranked_alike(
    compiled: ModuleType, periods: list[dict[int, int]], limit: int
) -> None:
    stored = [
        breakdowns.encode_group_counts(
            {"cDE": 1, **{f"L{key or ''}": n for key, n in links.items()}}
        )
        for links in periods
    ]
    sections = [breakdowns.split_links(data)[0] for data in stored]

    expected = breakdowns._rank_links(sections, limit)

    assert compiled.rank_links(sections, limit) == expected
    sums: Counter[int] = Counter()
    for links in periods:
        sums.update(links)
    del sums[0]  # the others
    ranked = sorted((-clicks, link_id) for link_id, clicks in sums.items())[:limit]
    assert expected == [(link_id, -clicks) for clicks, link_id in ranked]


@given(COUNTS, LINKS, st.booleans())
def test_links_of_groups_are_stored_apart_from_other_values(
    counts: dict[str, int], links: dict[int, int], pack: bool
) -> None:
    values = {f"c{key}": clicks for key, clicks in counts.items()}
    parts = values | {f"L{link_id or ''}": clicks for link_id, clicks in links.items()}

    data = breakdowns.encode_group_counts(parts, pack=pack)

    assert breakdowns.decode_counts(data) == parts
    assert breakdowns.split_links(data)[1] == breakdowns.encode_counts(values, pack=pack)
    assert sum_breakdowns([data]).counts == values


def test_events_of_several_batches_are_joined_in_the_order_of_their_targets() -> None:
    target = EVENT_COLUMNS.index("target_id")

    def build_row(place: int, target_id: int) -> list[int]:
        row = [place] * len(EVENT_COLUMNS)
        row[target] = target_id
        return row

    batches = [[*build_row(1, 9), *build_row(2, 7)], [], [*build_row(3, 8), *build_row(4, 7)]]

    join_by_target(batches)

    assert batches[1:] == [[], []]
    assert batches[0] == [
        *build_row(2, 7), *build_row(4, 7), *build_row(3, 8), *build_row(1, 9),
    ]  # fmt: skip
