"""Tags by example: what the person called the items that read most like this one."""

from collections import Counter
from collections.abc import Sequence
from math import log

from refract.library.enrich.material import Neighbour
from refract.library.enrich.words import norm

_ASKED = 7
_FLOOR = 0.06
_CERTAIN = 0.30


def votes(words: dict[str, float], neighbours: Sequence[Neighbour]) -> list[tuple[str, float, int]]:
    """(tag, confidence between 0.3 and 0.9, how many items say so), the surest first."""
    near = nearest(words, neighbours)
    if not near:
        return []
    total = sum(likeness for likeness, _ in near)
    closest = near[0][0]
    said: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for likeness, neighbour in near:
        for tag in neighbour.tags:
            said[tag] += likeness / total  # type: ignore[assignment]
            times[tag] += 1
    trust = min(1.0, closest / _CERTAIN)
    found = [(tag, round(0.3 + 0.6 * share * trust, 2), times[tag]) for tag, share in said.items()]
    return sorted((one for one in found if one[1] >= 0.35), key=lambda one: -one[1])


def nearest(words: dict[str, float], neighbours: Sequence[Neighbour]) -> list[tuple[float, Neighbour]]:
    """The few that share most of what is rare."""
    spread: Counter[str] = Counter(word for neighbour in neighbours for word in neighbour.words)
    rare = {word: log((1 + len(neighbours)) / (1 + spread[word])) + 0.1 for word in spread}
    mine = {word: weight * rare.get(word, 0.0) for word, weight in words.items() if word in rare}
    length = norm({word: weight * rare.get(word, log(1 + len(neighbours)) + 0.1) for word, weight in words.items()})
    found = []
    for neighbour in neighbours:
        shared = sum(mine[word] * weight * rare[word] for word, weight in neighbour.words.items() if word in mine)
        if shared:
            theirs = norm({word: weight * rare[word] for word, weight in neighbour.words.items()})
            found.append((shared / (length * theirs), neighbour))
    return sorted((one for one in found if one[0] >= _FLOOR), key=lambda one: -one[0])[:_ASKED]
