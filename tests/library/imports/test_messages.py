"""Sentences about rows and files, in the language of the page."""

import pytest

from refract.library.imports import BookmarkFileFormat, BookmarkRow
from refract.library.imports.decisions import classify_row
from refract.library.imports.importer import LIBRARY_FULL_MESSAGE
from refract.library.imports.messages import translate_place, translate_problem
from refract.records.errors import UnreadableFile
from refract.records.reader import UnreadableRow
from refract.web.i18n import LANGUAGES, use_locale
from tests.library.imports.test_formats import SAMPLES, read
from tests.pseudo import CLOSING, OPENING, PSEUDO

POCKET = "title,url,time_added,tags,status\n"
BROKEN_ROWS = {
    "no URL": f"{POCKET}x,,1,,unread\n",
    "no scheme": f"{POCKET}x,example,1,,unread\n",
    "another scheme": f"{POCKET}x,javascript:void(0),1,,unread\n",
    "a bad URL": f"{POCKET}x,http://[,1,,unread\n",
    "a bad quote": f'{POCKET}x,"http://a.example"b,1,,unread\n',
    "a long line": f"{POCKET}{'x' * 100_000}\n",
    "a NUL": f"{POCKET}a\0b,http://a.example,1,,unread\n",
    "no text": '[{"text": "x"}, {"text": ""}]',
    "an object for text": '[{"text": "x"}, {"text": {}}]',
    "no object": '[{"text": "x"}, 1]',
    "a broken end": '[{"text": "x"}, {',
    "deep nesting": '[{"text": "x"}, ' + "[" * 200,
    "an open tag": "<A HREF=http://a.example>x</A><A HREF=",
    "a file": '[{"content": {"type": "asset"}, "createdAt": 1}]',
    "remarks": (
        "id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite\n"
        f'1,{"t" * 300},{"n" * 3000},,http://a.example,,"{"x" * 80},<",,,a highlight,\n'
    ),
    "a long note": f'[{{"text": "{"x" * 11_000}"}}]',
}
BROKEN_FILES = {
    "empty": b"",
    "no bookmark": b"<html></html>",
    "no JSON": b"{",
    "a text": b'"x"',
    "deep nesting": b"[" * 1000,
    "no record": b"[" + b" " * 20_000_000,
    "other columns": b"a,b\n1,2\n",
    "other fields": b'[{"foo": 1}]',
    "a bad first line": b'"a"b,c\n',
}


def problems_of(row: BookmarkRow) -> list[str]:
    found = classify_row(row)
    return [text for text in (found.refused, found.remarks) if text]


def is_translated(text: str) -> bool:
    with use_locale(PSEUDO):
        parts = translate_problem(text).split("; ")
    return all(part.startswith(OPENING) and part.endswith(CLOSING) for part in parts)


@pytest.mark.parametrize("data", BROKEN_ROWS.values(), ids=BROKEN_ROWS)
def test_every_sentence_about_a_row_is_translated(data: str) -> None:
    found = [text for row in read(data)[0] for text in problems_of(row)]

    assert found
    assert [text for text in found if not is_translated(text)] == []


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_sentence_about_a_sample_is_translated(path: "object") -> None:
    found = [
        text for row in read((SAMPLES / str(path)).read_bytes())[0] for text in problems_of(row)
    ]

    assert [text for text in found if not is_translated(text)] == []


@pytest.mark.parametrize("data", BROKEN_FILES.values(), ids=BROKEN_FILES)
def test_every_sentence_about_a_file_is_translated(data: bytes) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(data)

    assert is_translated(caught.value.message), caught.value.message


@pytest.mark.parametrize("kind", [BookmarkFileFormat.POCKET, BookmarkFileFormat.KARAKEEP])
def test_a_file_of_another_format_than_the_chosen_one_is_translated(
    kind: BookmarkFileFormat,
) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read('[{"foo": 1}]' if kind is BookmarkFileFormat.KARAKEEP else "a,b\n1,2\n", kind)

    assert is_translated(caught.value.message), caught.value.message


def test_a_sentence_keeps_its_values() -> None:
    with use_locale(LANGUAGES["de"]):
        assert translate_place("line 12") == "Zeile 12"
        assert translate_problem(
            "title shortened to 255 characters; highlights are not imported"
        ) == ("Titel auf 255 Zeichen gekürzt; Markierungen werden nicht importiert")
        assert "zu tief verschachtelt" in translate_problem(
            "The rest of the file is unreadable: it is nested too deeply."
        )
        assert translate_problem(LIBRARY_FULL_MESSAGE).startswith("Die Bibliothek ist voll.")
        assert translate_problem("A sentence of an older version.") == (
            "A sentence of an older version."
        )


def test_in_english_nothing_changes() -> None:
    for data in BROKEN_ROWS.values():
        for row in read(data)[0]:
            if isinstance(row, UnreadableRow):
                assert (translate_place(row.where), translate_problem(row.why)) == (
                    row.where,
                    row.why,
                )
