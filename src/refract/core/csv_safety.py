"""Text in the cells of a CSV file. A spreadsheet would run a cell that begins like a formula; here none does, and none is changed."""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r\n|%\uff0b\uff0d\uff1d\uff20]")


def escape_formula(text: str) -> str:
    """The text, behind an apostrophe where a spreadsheet could take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """What `defused` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
