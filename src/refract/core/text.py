"""Text as it is compared, as it is shown when it was refused, and as it stands in HTML."""

import html
import re
import unicodedata

_ENDLESS_NUMBER = re.compile(r"&#[0-9]{1000,}+;?")


def fold_text(text: str) -> str:
    """The form under which texts that differ only in case or in composition are the same. It may be longer than the text."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFC", text).casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", folded).casefold())


def make_excerpt(text: str, most: int = 60) -> str:
    """Enough of a refused text to recognise it, and nothing that a log or a terminal could trip over."""
    printable = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text[: most + 1]
    )
    return printable if len(printable) <= most else f"{printable[:most]}…"


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 key", "1,200 keys", "2 people"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def unescape_html(text: str) -> str:
    """Replace character references. `html.unescape` raises ValueError about a number of several thousand digits."""
    return html.unescape(_ENDLESS_NUMBER.sub("\ufffd", text)) if "&" in text else text
