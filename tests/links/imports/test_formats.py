"""Reading files into rows: real samples of each system, and hostile files."""

import csv
import io
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.core.text import escape_formula, unescape_formula
from refract.links.export import COLUMNS, LinkExportFormat, LinkExportWriter
from refract.links.imports import Candidate, LinkFileFormat, LinkRow, open_link_file
from refract.records.errors import UnreadableFile
from refract.records.reader import UnreadableRow

SAMPLES = Path(__file__).parents[2] / "samples" / "imports"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def rows_of(
    data: bytes | str, kind: LinkFileFormat = LinkFileFormat.AUTO, encoding: str | None = None
) -> list[LinkRow]:
    raw = data.encode() if isinstance(data, str) else data
    return list(open_link_file(io.BytesIO(raw), NOW, kind, encoding))


def good(rows: list[LinkRow]) -> list[Candidate]:
    assert all(isinstance(row, Candidate) for row in rows), rows
    return [row for row in rows if isinstance(row, Candidate)]


def bad(row: LinkRow) -> UnreadableRow:
    assert isinstance(row, UnreadableRow), row
    return row


@pytest.mark.parametrize(
    ("sample", "kind", "names"),
    [
        ("yourls_table.csv", LinkFileFormat.YOURLS, ["ozh", "1a", "docs-v2"]),
        ("yourls_plugin.csv", LinkFileFormat.YOURLS, ["ozh", "1a"]),
        ("yourls_stats.json", LinkFileFormat.YOURLS, ["ozh", "1a"]),
        ("shlink_web.csv", LinkFileFormat.SHLINK, ["abc12", "promo"]),
        ("shlink_web_old.csv", LinkFileFormat.SHLINK, ["abc12"]),
        ("shlink_api.json", LinkFileFormat.SHLINK, ["abc12", "later", "over"]),
        ("kutt_api.json", LinkFileFormat.KUTT, ["spring", "vault", "spam"]),
        ("dub_links.csv", LinkFileFormat.DUB, ["spring", "aB3dE"]),
        ("dub_api.json", LinkFileFormat.DUB, ["spring", "docs/api"]),
        ("yourls_dump.sql", LinkFileFormat.YOURLS, ["ozh", "aB", "ab", "v1.0"]),
        ("table_of_links.csv", LinkFileFormat.COLUMNS, ["spring", "autumn"]),
    ],
)
def test_every_system_is_recognised_and_read(
    sample: str, kind: LinkFileFormat, names: list[str]
) -> None:
    with (SAMPLES / sample).open("rb") as file:
        rows = open_link_file(file, NOW)
        found = good(list(rows))

    assert rows.kind is kind
    assert [row.codes for row in found] == [(name,) for name in names]
    assert all(row.given["destination"].startswith("https://") for row in found)
    assert rows_of((SAMPLES / sample).read_bytes(), kind) == found


def read_sample(name: str) -> list[LinkRow]:
    return rows_of((SAMPLES / name).read_bytes())


def test_names_and_templates_of_golink() -> None:
    """A name means the same without dashes there. What a template says is translated, or told."""
    notes, search, release, user = read_sample("golink_export.jsonl")
    assert isinstance(notes, Candidate)
    assert (notes.codes, notes.given["destination"], notes.remarks) == (
        ("Meeting-Notes", "MeetingNotes"),
        "https://docs.example.com/notes",
        ("belonged to ada@example.com and is yours now",),
    )
    assert notes.created_at == datetime(2022, 6, 17, 18, 5, 20, 843214, tzinfo=UTC)
    assert isinstance(search, Candidate)
    assert search.given["destination"] == "https://code.example.com/search/{*}"
    assert "check where it leads" in search.remarks[0]
    assert isinstance(release, Candidate)
    assert release.given["destination"] == "https://example.com/releases?q={*}&a=%7Bb%7D"
    assert "that Refract doesn't know" in bad(user).why


def test_what_dub_knows_of_a_link() -> None:
    spring, api = good(read_sample("dub_api.json"))
    assert spring.host == "dub.test"
    assert spring.given["rules"] == [
        {"destination": "https://example.de/spring", "conditions": {"countries": ["DE"]}},
        {"destination": "https://apps.example.com/ios", "conditions": {"systems": ["ios"]}},
    ]
    assert (spring.given["title"], spring.given["notes"], spring.given["tags"]) == (
        "Spring",
        "Ask Ada",
        ["sale"],
    )
    assert spring.given["expires_at"] == datetime(2099, 4, 16, tzinfo=UTC)
    assert spring.given["expired_destination"] == "https://example.com/over"
    assert api.given["visibility"] == "secure"
    assert [row.host for row in good(read_sample("dub_links.csv"))] == ["dub.test", "go.dub.test"]


def test_back_halves_of_bitly_are_kept_with_the_link() -> None:
    spring, plain = good(read_sample("bitly_links.csv"))
    assert (spring.codes, spring.host) == (("spring", "3xYzAb1"), "brand.test")
    assert (plain.codes, plain.host) == (("2AbCdEf",), "bit.ly")
    assert spring.created_at == datetime(2021, 2, 3, 4, 5, 6, tzinfo=UTC)
    (same,) = good(read_sample("bitly_api.json"))
    assert (same.codes, same.given["tags"]) == (spring.codes, ["sale"])


def test_a_dump_is_read_and_not_run() -> None:
    """Quotes, semicolons and statements inside of texts are text."""
    ozh, *_, last = good(read_sample("yourls_dump.sql"))
    assert ozh.given["title"] == "Ozh's (blog), it's; \"here\""
    assert last.created_at == datetime(2018, 5, 1, 10, tzinfo=UTC)
    text = (SAMPLES / "yourls_dump.sql").read_text(encoding="utf-8")
    whole = len(read_sample("yourls_dump.sql"))
    for length in range(text.index("('aB'"), len(text) - 10, 3):
        cut = rows_of(text[:length].encode())
        assert 1 <= len(cut) <= whole + 1
        assert good(cut[:1]) == [ozh]


def test_rows_of_a_dump_across_the_pieces_it_is_read_in() -> None:
    tuples = ",".join(
        f"('k{number}','https://example.com/{number}','it\\'s {'x' * (number % 97)}',"
        "'2018-05-01 10:00:00','',0)"
        for number in range(5_000)
    )
    dump = f"CREATE TABLE `yourls_url` ();\nINSERT INTO `yourls_url` VALUES {tuples};\n"
    found = good(rows_of(dump.encode()))
    assert [row.codes[0] for row in found] == [f"k{number}" for number in range(5_000)]


def test_columns_are_guessed_shown_and_changeable() -> None:
    with (SAMPLES / "table_of_links.csv").open("rb") as file:
        rows = open_link_file(file, NOW)
        spring, autumn = good(list(rows))
    assert dict(rows.mapping) == {
        "code": "alias",
        "destination": "long url",
        "title": "label",
        "created_at": "created",
    }
    assert list(rows.unread) == ["owner"]
    assert (spring.given["title"], autumn.host) == ("Spring", "old.test")
    with (SAMPLES / "table_of_links.csv").open("rb") as file:
        other = open_link_file(file, NOW, mapping={"title": "Owner"})
        assert [row.given["title"] for row in good(list(other))] == ["ada", "bob"]
    with (
        (SAMPLES / "table_of_links.csv").open("rb") as file,
        pytest.raises(UnreadableFile, match="no column"),
    ):
        list(open_link_file(file, NOW, mapping={"title": "Nothing"}))


def test_a_yourls_table_without_a_heading_is_read_when_told_so() -> None:
    bare = (SAMPLES / "yourls_table.csv").read_text().split("\n", 1)[1]

    assert [row.given for row in good(rows_of(bare, LinkFileFormat.YOURLS))] == [
        row.given for row in good(rows_of((SAMPLES / "yourls_table.csv").read_bytes()))
    ]
    with pytest.raises(UnreadableFile, match="destination"):
        rows_of(bare)


def test_yourls_titles_and_literal_braces() -> None:
    rows = good(
        rows_of(
            "keyword,url,title\n"
            f"a,https://example.com/{{id}},{'t' * 201}\n"
            "b,https://example.com/,NULL\n"
        )
    )

    assert rows[0].given["destination"] == "https://example.com/%7Bid%7D"
    assert rows[0].given["title"] == "t" * 200
    assert rows[0].remarks == ("title shortened to 200 characters",)
    assert "title" not in rows[1].given


def test_what_shlink_knows_of_a_short_url() -> None:
    first, later, over = good(rows_of((SAMPLES / "shlink_api.json").read_bytes()))

    assert first.given["tags"] == ["news", "c++"]
    assert first.given["forward_query"] is True
    assert first.given["expires_at"] == datetime(2099, 12, 31, 22, 59, 59, tzinfo=UTC)
    assert not later.disabled
    assert later.given["starts_at"].date() == date(2098, 1, 1)
    assert (later.given["click_limit"], later.clicks_left) == (100, 99)
    assert list(later.remarks) == [
        "its redirect rules aren't in the file, so they aren't kept",
    ]
    assert over.given["expires_at"] == datetime(2020, 2, 1, tzinfo=UTC)


def _read_shlink_rules(**fields: Any) -> Candidate:
    record = {"shortCode": "a", "longUrl": "https://example.com", **fields}
    (row,) = good(rows_of(json.dumps([record])))
    return row


def test_rules_of_shlink_become_rules() -> None:
    def make_rule(url: str, kind: str, value: str) -> dict[str, Any]:
        return {"longUrl": url, "conditions": [{"type": kind, "matchValue": value}]}

    row = _read_shlink_rules(
        hasRedirectRules=True,
        redirectRules=[
            make_rule("https://example.com/{de}", "language", "de"),
            make_rule("https://example.com/office", "ip-address", "192.0.2.1"),
            make_rule("https://example.com/app", "device", "android"),
        ],
    )

    assert row.given["rules"] == [
        {"destination": "https://example.com/%7Bde%7D", "conditions": {"languages": ["de"]}},
        {"destination": "https://example.com/app", "conditions": {"systems": ["android"]}},
    ]
    assert row.remarks == (
        "a rule isn't kept, as there is no such condition here: ip-address 192.0.2.1",
    )


def test_destinations_for_devices_of_older_versions_of_shlink_become_rules() -> None:
    row = _read_shlink_rules(
        deviceLongUrls={"android": "https://example.com/a", "ios": None, "desktop": None}
    )

    assert row.given["rules"] == [
        {"destination": "https://example.com/a", "conditions": {"systems": ["android"]}}
    ]
    assert not row.remarks


def test_more_rules_than_a_link_may_have_are_named() -> None:
    rule = {
        "longUrl": "https://example.com",
        "conditions": [{"type": "device", "matchValue": "ios"}],
    }
    row = _read_shlink_rules(redirectRules=[rule] * 21)

    assert len(row.given["rules"]) == 20
    assert row.remarks == ("only the first 20 rules are kept",)


def test_shlink_tags_of_both_exports() -> None:
    assert good(rows_of((SAMPLES / "shlink_web.csv").read_bytes()))[0].given["tags"] == [
        "news",
        "c++",
        "Team Site",
    ]
    assert good(rows_of((SAMPLES / "shlink_web_old.csv").read_bytes()))[0].given["tags"] == [
        "one",
        "two",
    ]


def test_what_kutt_knows_of_a_link() -> None:
    spring, vault, spam = good(rows_of((SAMPLES / "kutt_api.json").read_bytes()))

    assert spring.given["title"] == "Spring campaign"
    assert spring.given["expires_at"] == datetime(2099, 4, 16, tzinfo=UTC)
    assert vault.given["visibility"] == "secure"  # a password must not become open access
    assert spam.disabled


def test_a_long_kutt_description_becomes_notes() -> None:
    record = {"address": "a", "target": "https://example.com/", "description": "d" * 2040}
    row = good(rows_of(json.dumps({"data": [record]})))[0]

    assert row.given["notes"] == "d" * 2000
    assert row.remarks == ("notes shortened to 2000 characters",)


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


@given(_TEXT)
def test_defusing_a_cell_can_always_be_undone(text: str) -> None:
    assert unescape_formula(escape_formula(text)) == text
    assert escape_formula(text)[:1] not in tuple("=+-@\t\r\n|%＝＋－＠")


@pytest.mark.parametrize("form", list(LinkExportFormat))
@given(_TEXT.filter(str.strip), _TEXT.filter(str.strip), st.booleans())
def test_whatever_is_written_is_read_again(
    form: LinkExportFormat, title: str, notes: str, forward: bool
) -> None:
    record: dict[str, Any] = {
        "id": "123456789012345678",
        "code": "97qS0b7N2m",
        "domain": "go.example",
        "names": ["a-1", "B_2"],
        "other_names": [],
        "kept_codes": ["a/b.c", "x,y;z"],
        "destination": "https://example.com/?a=1|2",
        "title": title,
        "notes": notes,
        "tags": ["Engineering Tools", "ä"],
        "status": "disabled",
        "visibility": "secure",
        "redirect_status": 308,
        "forward_query": forward,
        "noindex": True,
        "expires_at": "2026-12-31T23:59:59.123456Z",
        "expired_destination": "https://example.com/over",
        "starts_at": "2026-06-01T00:00:00Z",
        "before_destination": "https://example.com/soon",
        "rules": [{"destination": "https://example.com/a,b", "conditions": {"countries": ["AT"]}}],
        "preview_card": {"title": "Plans", "description": None, "image_url": None},
        "click_limit": 100,
        "clicks_left": 40,
        "limit_destination": "https://example.com/sold-out",
        "qr_style": {"color": "#1d4ed8", "shape": "dots"},
        "created_at": "2026-01-01T00:00:00Z",
        "team": "crew",
        "owners": ["a@b.c"],
        "clicks": 7,
    }
    assert tuple(record) == COLUMNS
    writer = LinkExportWriter(form)

    rows = good(
        rows_of(writer.head() + writer.page([record]) + writer.page([record]) + writer.tail())
    )

    assert len(rows) == 2
    assert rows[0].given == rows[1].given
    assert rows[0].number == 123456789012345678
    assert rows[0].disabled
    assert rows[0].clicks_left == 40
    assert rows[0].given == {
        **{
            name: record[name]
            for name in (
                "destination",
                "domain",
                "names",
                "title",
                "notes",
                "tags",
                "visibility",
                "redirect_status",
                "forward_query",
                "noindex",
                "team",
                "before_destination",
                "expired_destination",
                "preview_card",
                "click_limit",
                "limit_destination",
                "qr_style",
                "rules",
            )
        },
        "starts_at": datetime(2026, 6, 1, tzinfo=UTC),
        "expires_at": datetime(2026, 12, 31, 23, 59, 59, 123456, tzinfo=UTC),
    }


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_spreadsheets_write_csv_in_many_ways(mark: bytes, end: str, delimiter: str) -> None:
    text = end.join(
        [
            delimiter.join(["Destination", " Name ", "Title"]),
            delimiter.join(["https://example.com/", "a", '"x, ""y"""']),
            "",
        ]
    )
    row = good(rows_of(mark + text.encode()))[0]

    assert row.given["destination"] == "https://example.com/"
    assert row.given["names"] == ["a"]
    assert row.given["title"] == 'x, "y"'
    assert row.where == "line 2"


def test_utf_16_and_a_named_encoding() -> None:
    assert (
        good(rows_of("destination,title\nhttps://example.com/,Größe\n".encode("utf-16")))[0].given[
            "title"
        ]
        == "Größe"
    )
    latin = "destination,title\nhttps://example.com/,Größe\nhttps://example.com/2,plain\n".encode(
        "cp1252"
    )
    assert good(rows_of(latin, encoding="cp1252"))[0].given["title"] == "Größe"
    refused, kept = rows_of(latin)
    assert "Save the file as UTF-8" in bad(refused).why
    assert isinstance(kept, Candidate)
    with pytest.raises(UnreadableFile, match="no encoding"):
        rows_of(latin, encoding="klingon")


def test_a_line_of_ten_megabytes_costs_itself_alone() -> None:
    huge = f'https://example.com/1,a\n"{"x" * 10_000_000}",b\nhttps://example.com/3,c\n'
    first, second, third = rows_of(f"destination,title\n{huge}")

    assert isinstance(first, Candidate)
    assert (bad(second).where, bad(second).why) == ("line 3", "The line is too long.")
    assert len(bad(second).text) <= 200
    assert isinstance(third, Candidate)
    assert third.where == "line 4"


def test_an_open_quote_does_not_swallow_the_rest() -> None:
    text = (
        'destination,title\nhttps://example.com/1,"open\nhttps://example.com/2,b\n'
        + "https://example.com/3,c\n" * 3
    )
    rows = rows_of(text)

    assert bad(rows[0]).where == "line 2"
    assert [row.where for row in good(rows[1:])] == ["line 3", "line 4", "line 5", "line 6"]


def test_a_record_over_several_lines_is_named_by_its_first() -> None:
    rows = good(
        rows_of(
            'destination,notes\nhttps://example.com/1,"one\ntwo\r\nthree"\nhttps://example.com/2,\n'
        )
    )

    assert [row.where for row in rows] == ["line 2", "line 5"]
    assert rows[0].given["notes"] == "one\ntwo\r\nthree"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("https://example.com/,a\0b", "U+0000"),
        ("https://example.com/,a,b,c", "4 cells"),
        ('https://example.com/,"a"b', "not valid CSV"),
    ],
)
def test_bad_lines_say_why(line: str, why: str) -> None:
    refused, kept = rows_of(f"destination,title\n{line}\nhttps://example.com/,fine\n")

    assert why in bad(refused).why
    assert isinstance(kept, Candidate)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("status", "deleted", "It is deleted"),
        ("status", "asleep", "must be active, disabled or expired"),
        ("expires_at", "tomorrow", "not a time"),
        ("redirect_status", "3o2", "must be a whole number"),
        ("forward_query", "maybe", "must be true or false"),
        ("id", "x", "Enter an id: a whole number"),
    ],
)
def test_bad_cells_say_why(field: str, value: str, why: str) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["destination", field], ["https://example.com/", value]])

    assert why in bad(rows_of(text.getvalue())[0]).why


def test_json_lines_that_are_none() -> None:
    lines = [
        "",
        '{"destination": "https://example.com/"}',
        "{",
        "[1]",
        '{"destination": "\\ud800"}',
        '{"destination": "' + "x" * 70_000 + '"}',
    ]
    fine, broken, no_object, surrogate, long = rows_of("\n".join(lines), LinkFileFormat.JSONL)

    assert isinstance(fine, Candidate)
    assert "not valid JSON" in bad(broken).why
    assert "Not an object" in bad(no_object).why
    assert "Not valid text" in bad(surrogate).why
    assert "too long" in bad(long).why


def test_json_that_breaks_off_keeps_what_came_before() -> None:
    text = '{"links": [{"destination": "https://example.com/1"}, {"destination": "https://exa'
    fine, broken = rows_of(text)

    assert isinstance(fine, Candidate)
    assert bad(broken).where == "item 2"


@pytest.mark.parametrize("text", ["", "[" * 100_000, "hello", "<html>", '{"a": [', "5"])
def test_files_that_are_none_of_ours_end_in_words(text: str) -> None:
    with pytest.raises(UnreadableFile):
        rows_of(text)


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", '{"links": 5}', '{"links": {}}', "[1, 2]", '{"data": {"data": {"data": {}}}}'],
)
def test_documents_without_links_have_none(text: str) -> None:
    assert not [row for row in rows_of(text, LinkFileFormat.JSON) if isinstance(row, Candidate)]


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_json_breaks_a_reader(value: Any) -> None:
    for record in (
        {
            "destination": value,
            "names": value,
            "tags": value,
            "status": value,
            "id": value,
            "expires_at": value,
            "title": value,
        },
        {
            "longUrl": value,
            "shortCode": value,
            "tags": value,
            "meta": value,
            "deviceLongUrls": value,
            "forwardQuery": value,
        },
        {
            "longUrl": "https://example.com/",
            "shortCode": "a",
            "meta": {"validUntil": value, "validSince": value},
        },
        {
            "address": "a",
            "target": value,
            "description": value,
            "expire_in": value,
            "password": value,
        },
        {"keyword": value, "url": value, "title": value},
        {"shorturl": value, "url": value},
    ):
        for text, kind in (
            (json.dumps([record]), LinkFileFormat.JSON),
            (json.dumps(record), LinkFileFormat.JSONL),
        ):
            try:
                rows_of(text, LinkFileFormat.AUTO if "destination" not in record else kind)
            except UnreadableFile:
                continue


@pytest.mark.parametrize("depth", [90, 150, 500, 900, 1_000, 5_000])
def test_nesting_costs_its_record_alone(depth: int) -> None:
    """Deep nesting within a line of 64 kB only fails its own record, with a message."""
    deep = "[" * depth + "]" * depth
    lines = [
        f'{{"destination": {deep}}}',
        f'{{"longUrl": 1, "tags": [{deep}]}}',
        deep,
        '{"destination": "https://example.com/"}',
    ]

    *broken, good = rows_of("\n".join(lines), LinkFileFormat.JSONL)

    assert isinstance(good, Candidate)
    assert len(broken) == 3
    assert all(len(row.text) <= 2 * depth for row in broken)


def test_a_record_across_the_pieces_a_file_is_read_in() -> None:
    records = [
        {"destination": f"https://example.com/{number}", "notes": "n" * 1990}
        for number in range(200)
    ]

    rows = good(rows_of(json.dumps(records)))

    assert [row.given["destination"] for row in rows] == [
        record["destination"] for record in records
    ]


def test_columns_that_mean_nothing_are_named() -> None:
    rows = open_link_file(
        io.BytesIO(b"destination,colour,clicks\nhttps://example.com/,red,5\n"), NOW
    )

    assert good(list(rows))
    assert rows.unread == ["colour"]


def test_a_system_that_did_not_write_the_file() -> None:
    with pytest.raises(UnreadableFile, match="not those of kutt"):
        rows_of((SAMPLES / "yourls_table.csv").read_bytes(), LinkFileFormat.KUTT)
    with pytest.raises(UnreadableFile, match="destination"):
        rows_of((SAMPLES / "yourls_table.csv").read_bytes(), LinkFileFormat.CSV)
