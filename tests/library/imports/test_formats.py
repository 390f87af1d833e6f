"""Bookmark files as rows: every supported system, and hostile files."""

import io
import json
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.library.imports import Bookmark, BookmarkFileFormat, BookmarkRow, TagRow, open_rows
from refract.library.imports.upload import STORE_ROWS_TASK
from refract.library.models import READING_STATES
from refract.records.errors import UnreadableFile
from refract.records.reader import UnreadableRow

SAMPLES = Path(__file__).parents[2] / "samples" / "imports" / "library"


def read(
    data: bytes | str, kind: BookmarkFileFormat = BookmarkFileFormat.AUTO
) -> tuple[list[BookmarkRow], BookmarkFileFormat]:
    rows = open_rows(io.BytesIO(data.encode() if isinstance(data, str) else data), kind)
    return list(rows), rows.kind


def sample(name: str, kind: BookmarkFileFormat) -> list[BookmarkRow]:
    rows, found = read((SAMPLES / name).read_bytes())
    assert found is kind
    assert read((SAMPLES / name).read_bytes(), kind) == (rows, kind)
    return rows


def good(rows: list[BookmarkRow]) -> list[Bookmark]:
    return [row for row in rows if isinstance(row, Bookmark)]


def states(row: Bookmark) -> str:
    return " ".join(name for name in READING_STATES if getattr(row, name))


def test_a_browser_s_bookmarks() -> None:
    rows = sample("chrome.html", BookmarkFileFormat.NETSCAPE)
    bread, soup, pinboard, single = good(rows)
    assert (bread.text, bread.title, bread.tags) == (
        "https://example.com/bread?a=1&b=2",
        "Bread & butter",
        (),
    )
    assert bread.created_at == bread.confirmed_at == datetime.fromtimestamp(1_600_000_000, UTC)
    assert (soup.title, soup.summary, soup.tags) == (
        "Soup",
        "A warm one,\nfor winter.",
        ("Recipes",),
    )
    assert pinboard.tags == ("c++", "late night")
    assert (single.text, single.title) == ("https://example.org/single", "Quoted otherwise")
    assert single.created_at == datetime.fromtimestamp(1_600_000_003, UTC)
    (refused,) = [row for row in rows if isinstance(row, UnreadableRow)]
    assert (refused.where, refused.why) == (
        "bookmark 3",
        "Only http and https links are supported, not javascript:.",
    )


def test_pocket() -> None:
    long, untitled = good(sample("pocket.csv", BookmarkFileFormat.POCKET))
    assert (long.title, long.tags) == ("An article, long", ("read later", "essays"))
    assert untitled.title is None
    assert (states(long), states(untitled)) == ("unread", "archived")


def test_a_page_of_pocket() -> None:
    """Its headings say what is unread. Browsers have headings too, which say nothing."""
    link = '<li><a href="https://example.com/{0}" time_added="160000000{0}" tags="x">{0}</a></li>'
    rows, kind = read(
        f"<html><h1>Unread</h1><ul>{link.format(1)}</ul>"
        f"<h1>Read Archive</h1><ul>{link.format(2)}</ul></html>"
    )
    assert kind is BookmarkFileFormat.NETSCAPE
    assert [(row.title, states(row)) for row in good(rows)] == [("1", "unread"), ("2", "archived")]
    other, _ = read(
        '<H1>Unread</H1><DL><DT><A HREF="https://example.com/3" ADD_DATE="1">3</A></DL>'
    )
    assert [states(row) for row in good(other)] == [""]


def test_a_bookmark_file_of_linkding() -> None:
    """Its markers are no part of texts and tags."""
    rows, _ = read(
        "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>"
        '<DT><A HREF="https://example.com/1" ADD_DATE="1600000000" PRIVATE="1" TOREAD="1"'
        ' TAGS="a,linkding:bookmarks.archived">One</A>\n'
        "<DD>About[linkding-notes]My *own*\n\nwords &lt;3[/linkding-notes]\n"
        '<DT><A HREF="https://example.com/2" TOREAD="0" TAGS="linkding:archived">Two</A>\n'
        "<DD>[linkding-notes]Never closed\n"
        '<DT><A HREF="https://example.com/3" TOREAD="yes">Three</A></DL>'
    )
    one, two, three = good(rows)
    assert (one.summary, one.notes, one.tags, states(one)) == (
        "About",
        "My *own*\n\nwords <3",
        ("a",),
        "unread archived",
    )
    assert (two.summary, two.notes, two.tags, states(two)) == (None, "Never closed", (), "archived")
    assert (three.notes, states(three)) == (None, "unread")


@pytest.mark.parametrize("value", ["0", "", "no", "false", None, {}, ["1"], "x" * 9_999])
def test_what_is_no_yes_sets_no_state(value: object) -> None:
    row = {"url": "https://example.com/", "tag_names": [], "unread": value, "is_archived": value}
    rows, _ = read(json.dumps([row]), BookmarkFileFormat.LINKDING)
    assert [states(one) for one in good(rows)] == [""]


def test_raindrop() -> None:
    engines, plain = good(sample("raindrop.csv", BookmarkFileFormat.RAINDROP))
    assert (engines.summary, engines.notes) == ("What the page says", "My own\nwords")
    assert (states(engines), states(plain)) == ("", "favorite")
    assert engines.tags == ("power", "iron", "Machines", "Steam")
    assert engines.created_at == datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert (plain.tags, plain.remarks) == ((), ("highlights are not imported",))


def test_linkding() -> None:
    (ding,) = good(sample("linkding.json", BookmarkFileFormat.LINKDING))
    assert (ding.text, ding.title, ding.summary, ding.tags) == (
        "https://example.com/ding",
        "Ding",
        "Described",
        ("one", "two"),
    )
    assert (ding.notes, states(ding)) == ("Noted", "unread")
    assert ding.created_at == datetime(2022, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def test_karakeep() -> None:
    kept, thought, scan = sample("karakeep.json", BookmarkFileFormat.KARAKEEP)
    assert isinstance(kept, Bookmark)
    assert (kept.text, kept.summary, kept.notes, kept.tags, states(kept)) == (
        "https://example.com/kept",
        None,
        "Mine",
        ("ai", "Later"),
        "favorite archived",
    )
    assert isinstance(thought, Bookmark)
    assert thought.text == "A thought\nin two lines"
    assert isinstance(scan, UnreadableRow)
    assert scan.why == "Files are not supported, only links and text."


def test_our_own_tags() -> None:
    rows, kind = read(
        '{"tags": [{"name": "k", "color": "#abcdef", "aliases": ["k8s"]}], "items": [{"text": "x",'
        ' "tags": [{"name": "k"}]}]}'
    )
    assert kind is BookmarkFileFormat.REFRACT
    assert rows[0] == TagRow("item 1", "k", "#ABCDEF", ["k8s"])
    assert good(rows)[0].tags == ("k",)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"<html><body>nothing</body></html>", "No bookmarks"),
        (b"a,b\n1,2\n", "columns"),
        (b"{", "No bookmarks found in this file: "),
        (b"[" * 100_000, "nested too deeply"),
        (b'[{"foo": 1}]', "fields"),
        (b"\x00\x01\x02", "columns"),
    ],
)
def test_a_file_that_is_none_says_so(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableFile, match=why):
        read(data)


def test_broken_text_costs_its_row_alone() -> None:
    rows, _ = read(
        b'<DL><DT><A HREF="https://a.test/1">\xff\xfe</A><DT><A'
        b' HREF="https://a.test/2">Fine</A></DL>'
    )
    assert [type(row) for row in rows] == [UnreadableRow, Bookmark]
    rows, _ = read(b'<DL><DT><A HREF="https://a.test/1">a&#0;b&#xD800;</A></DL>')
    assert isinstance(rows[0], Bookmark)
    assert "\0" not in (rows[0].title or "")


def test_a_file_cut_off_keeps_what_came_before() -> None:
    rows, _ = read('<DL><DT><A HREF="https://a.test/1">One</A><DT><A HREF="https://a.te')
    assert [type(row) for row in rows] == [Bookmark, UnreadableRow]
    rows, _ = read('[{"text": "a"}, {"text": "b"}, {"te')
    assert [type(row) for row in rows] == [Bookmark, Bookmark, UnreadableRow]


def test_folders_may_be_nested_as_deep_as_they_like() -> None:
    deep = (
        "<DL><DT><H3>f</H3>" * 5_000
        + '<DL><DT><A HREF="https://a.test/">Deep</A></DL>'
        + "</DL>" * 5_000
    )
    (row,) = read(deep + '<DT><A HREF="https://a.test/2">Out</A>')[0][:1]
    assert isinstance(row, Bookmark)
    assert row.tags == ("f",)


@pytest.mark.parametrize(
    "piece",
    [
        '<a "',
        "<a '",
        "<!--",
        '<A HREF="',
        "<",
        "<A <A <A ",
        '<A HREF="https://a.test/" X=',
        "&#x110000;&amp",
        "<DD>x",
        "<H3>",
    ],
)
def test_hostile_markup_is_read_to_its_end(piece: str) -> None:
    """A parser that looked back over everything before would not end."""
    rows, _ = read(
        '<DL><DT><A HREF="https://a.test/">x</A>' + piece * (200_000 // len(piece)),
        BookmarkFileFormat.NETSCAPE,
    )
    assert isinstance(rows[0], Bookmark)


def test_no_more_than_a_bookmark_is_in_memory() -> None:
    line = b'<DT><A HREF="https://a.test/">' + b"x" * 500 + b"</A>\n"
    tracemalloc.start()
    try:
        assert sum(1 for _ in open_rows(io.BytesIO(b"<DL>" + line * 4_000))) == 4_000
        assert tracemalloc.get_traced_memory()[1] < 3 * 2_200_000
    finally:
        tracemalloc.stop()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_nothing_that_can_be_sent_breaks_a_reader(data: bytes) -> None:
    for kind in BookmarkFileFormat:
        try:
            rows, _ = read(data, kind)
        except UnreadableFile:
            continue
        assert all(row.where for row in rows)


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_json_breaks_a_reader(value: object) -> None:
    for record in (
        {"url": value, "tag_names": value, "title": value},
        {"content": value, "createdAt": value},
        {"text": value, "page": value},
    ):
        try:
            read(json.dumps([record]))
        except UnreadableFile:
            continue


def test_the_extraction_process_loads_no_database_code_for_a_file() -> None:
    """It is started anew for most files: SQLAlchemy and pydantic took 0.5 s and 40 MB of it."""
    task = STORE_ROWS_TASK.function.partition(":")[0]
    check = (
        f"import sys; import refract.core.extraction.worker, {task};"
        " sys.exit(bool({'asyncio', 'sqlalchemy', 'pydantic', 'structlog'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
