"""Similar names, found without reading every name.

Cut a key in three. Two edits (a character too many, too few or wrong) change at most two of the
parts, so one part is unchanged in the typed text, moved by at most two places. Each name stores its
three parts in indexed columns; the typed text is cut into every piece that could be such a part,
and the pieces are looked up.
"""

import re

MAX_EDITS = 2
MIN_LENGTH = 2
MAX_LENGTH = 52
"""The longest name plus two characters."""


def replace_invalid(key: str) -> str:
    """Return a key with `?` for each character that no name has.

    It then counts as a wrong character, and is valid text for every database.
    """
    return re.sub(r"[^a-z0-9-]", "?", key)


def split_key(key: str) -> tuple[str, str, str]:
    """Return the three parts of a key as they are stored: its length, then the text."""
    size = len(key)
    cuts = _find_cuts(size)
    return (
        _format_part(size, key[: cuts[0]]),
        _format_part(size, key[cuts[0] : cuts[1]]),
        _format_part(size, key[cuts[1] :]),
    )


def generate_parts(typed: str) -> tuple[list[str], list[str], list[str]]:
    """Return, for each part, all its values in names at most two edits away from a text."""
    found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for size in range(max(1, len(typed) - MAX_EDITS), len(typed) + MAX_EDITS + 1):
        first, second = _find_cuts(size)
        for place, (start, end) in enumerate(((0, first), (first, second), (second, size))):
            for shift in range(-MAX_EDITS, MAX_EDITS + 1):
                if start + shift >= 0 and end + shift <= len(typed):
                    found[place].add(_format_part(size, typed[start + shift : end + shift]))
    return sorted(found[0]), sorted(found[1]), sorted(found[2])


def edit_distance(first: str, second: str, limit: int = MAX_EDITS) -> int | None:
    """Return the number of edits between two texts, or None if it is more than `limit`."""
    if abs(len(first) - len(second)) > limit:
        return None
    above = list(range(len(second) + 1))
    for row, character in enumerate(first, start=1):
        low, high = max(1, row - limit), min(len(second), row + limit)
        line = [limit + 1] * (len(second) + 1)
        line[0] = row
        for column in range(low, high + 1):
            line[column] = min(
                above[column] + 1,
                line[column - 1] + 1,
                above[column - 1] + (character != second[column - 1]),
            )
        above = line
    return above[-1] if above[-1] <= limit else None


def _find_cuts(size: int) -> tuple[int, int]:
    return size // 3, 2 * size // 3


def _format_part(size: int, text: str) -> str:
    return f"{size}:{text}"
