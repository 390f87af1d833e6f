"""Names that somebody may have meant, found without reading every name.

Cut a key in three. Two edits (a character too many, too few or wrong) can spoil at most two of the parts, so one part stands
unchanged in whatever was typed, moved by at most two places. Each name keeps its three parts in indexed columns; what was typed is
cut into every piece that could be such a part, and the pieces are looked up.
"""

import re

MOST_EDITS = 2
SHORTEST = 2
LONGEST = 52
"""The longest name and two characters too many."""


def readable(key: str) -> str:
    """A key with a question mark for every character that no name has: it counts as a wrong one, and no database stumbles over it."""
    return re.sub(r"[^a-z0-9-]", "?", key)


def parts(key: str) -> tuple[str, str, str]:
    """The three parts of a key as they are stored: its length, then the text."""
    size = len(key)
    cuts = _cuts(size)
    return _part(size, key[: cuts[0]]), _part(size, key[cuts[0] : cuts[1]]), _part(size, key[cuts[1] :])


def pieces(typed: str) -> tuple[list[str], list[str], list[str]]:
    """For each part, everything that it may be in a name at most two edits away from what was typed."""
    found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for size in range(max(1, len(typed) - MOST_EDITS), len(typed) + MOST_EDITS + 1):
        first, second = _cuts(size)
        for place, (start, end) in enumerate(((0, first), (first, second), (second, size))):
            for shift in range(-MOST_EDITS, MOST_EDITS + 1):
                if start + shift >= 0 and end + shift <= len(typed):
                    found[place].add(_part(size, typed[start + shift : end + shift]))
    return sorted(found[0]), sorted(found[1]), sorted(found[2])


def distance(one: str, other: str, most: int = MOST_EDITS) -> int | None:
    """How many edits lead from one text to the other; None for more than `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    above = list(range(len(other) + 1))
    for row, character in enumerate(one, start=1):
        low, high = max(1, row - most), min(len(other), row + most)
        line = [most + 1] * (len(other) + 1)
        line[0] = row
        for column in range(low, high + 1):
            line[column] = min(above[column] + 1, line[column - 1] + 1, above[column - 1] + (character != other[column - 1]))
        above = line
    return above[-1] if above[-1] <= most else None


def _cuts(size: int) -> tuple[int, int]:
    return size // 3, 2 * size // 3


def _part(size: int, text: str) -> str:
    return f"{size}:{text}"
