"""Text for comparison, for messages about rejected input, from HTML, and for CSV cells."""

import html
import re
import unicodedata

_ACCENTS = re.compile("[\u0300-\u036f]+")
_ENDLESS_NUMBER = re.compile(r"&#[0-9]{1000,}+;?")


def fold_text(text: str) -> str:
    """Return the form in which texts that differ only in case or composition are equal.

    It may be longer than the text.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFC", text).casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", folded).casefold())


def strip_accents(text: str) -> str:
    """Return a folded text without accents and typographic forms: `café` becomes `cafe`."""
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return fold_text(unicodedata.normalize("NFC", plain))


def fold_for_search(text: str) -> str:
    """Return a folded text, followed by its form without accents where that differs.

    So `cafe` finds `café`, and `café` finds itself alone.
    """
    folded = fold_text(text)
    plain = strip_accents(folded)
    return folded if plain == folded else f"{folded}\n{plain}"


def make_excerpt(text: str, max_length: int = 60) -> str:
    """Return enough of a rejected text to recognise it, safe for logs and terminals."""
    printable = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text[: max_length + 1]
    )
    return printable if len(printable) <= max_length else f"{printable[:max_length]}…"


def clean_line(text: str, max_length: int) -> str:
    """Return text as one line of at most `max_length` characters.

    Control and formatting characters, which could reverse or hide parts of it, become spaces.
    """
    cleaned = "".join(
        character if not unicodedata.category(character).startswith("C") else " "
        for character in unicodedata.normalize("NFC", text[: max_length * 4])
    )
    return " ".join(cleaned.split())[:max_length]


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 key", "1,200 keys", "2 people"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def unescape_html(text: str) -> str:
    """Replace character references.

    `html.unescape` raises ValueError for a number of several thousand digits.
    """
    return html.unescape(_ENDLESS_NUMBER.sub("\ufffd", text)) if "&" in text else text


# Escaping of CSV cells that a spreadsheet would run as a formula. Reversible.

_FORMULA = re.compile(r"'*[=+\-@\t\r\n|%\uff0b\uff0d\uff1d\uff20]")


def escape_formula(text: str) -> str:
    """Prefix the text with an apostrophe if a spreadsheet could take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """Return the text that `escape_formula` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
