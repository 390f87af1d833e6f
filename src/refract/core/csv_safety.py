"""Escaping of CSV cells that a spreadsheet would run as a formula. Reversible."""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r\n|%\uff0b\uff0d\uff1d\uff20]")


def escape_formula(text: str) -> str:
    """Prefix the text with an apostrophe if a spreadsheet could take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """Return the text that `escape_formula` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
