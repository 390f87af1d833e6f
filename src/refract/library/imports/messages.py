"""Sentences about rows and files of an import, for pages in another language.

Readers (`refract.records` and this package) write them in English into rows and errors, which is
what the API and the command line show. A test checks that none is missing here.
"""

from typing import Final

from refract.web.i18n import mark, translate_filled

REMARK_SEPARATOR: Final = "; "
_PLACES: Final = (mark("line {number}"), mark("item {number}"), mark("bookmark {number}"))
_SENTENCES: Final = (
    mark("Duplicate in file."),
    mark("Your library is full. Ask an administrator for more room."),
    # of records
    mark("No URL or text."),
    mark("No URL."),
    mark("Not a URL."),
    mark("Not a valid URL."),
    mark("Only http and https links are supported, not {scheme}:."),
    mark("Files are not supported, only links and text."),
    mark("Not an object with the fields of a bookmark."),
    mark("Expected text, found {value}."),
    mark("Contains the character U+0000."),
    mark(
        "Not valid text in the encoding of the file. Save the file as UTF-8, or name its encoding."
    ),
    mark("This row has {cells} cells, but the header has {columns}."),
    mark("The line is too long."),
    mark("The line is not valid CSV: {problem}."),
    mark("The line is not valid JSON: {problem}."),
    mark("The rest of the file is unreadable: {problem}."),
    # of files
    mark("The file is empty."),
    mark("The file does not start like a CSV file. {problem}"),
    mark("No bookmarks found in this file."),
    mark("No bookmarks found in this file: {problem}."),
    mark("The columns of the file match no known format: {fields}."),
    mark("The columns of the file do not match {format}: {fields}."),
    mark("The fields of the first record match no known format: {fields}."),
    mark("The fields of the first record do not match {format}: {fields}."),
    mark("The file has more than {limit} rows. Split it and import the parts."),
    mark("The file takes too long to read. Split it and import the parts."),
    # inside of others
    mark("it is neither a list nor an object"),
    mark("it is nested too deeply"),
    mark("a record is too long or broken"),
    mark("a tag is never closed"),
    mark("a tag is too long"),
    # remarks about rows that were imported
    mark("highlights are not imported"),
    mark('skipped tag "{name}"'),
    mark("title shortened to {limit} characters"),
    mark("summary shortened to {limit} characters"),
    mark("notes shortened to {limit} characters"),
    mark("text shortened to {limit} characters"),
)


def translate_place(place: str) -> str:
    """Return where a row stands in its file, in the current language."""
    return translate_filled(place, _PLACES)


def translate_problem(problem: str) -> str:
    """Return why a row or a file was refused, or what was left out, in the current language."""
    whole = translate_filled(problem, _SENTENCES)
    if whole != problem:
        return whole
    parts = problem.split(REMARK_SEPARATOR)
    return REMARK_SEPARATOR.join(translate_filled(part, _SENTENCES) for part in parts)
