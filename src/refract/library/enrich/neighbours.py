"""Tags by example: what the person called the items that read most like this one."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt

from refract.library.enrich.material import Neighbour
from refract.library.likeness import WordSpace

_ASKED = 7
_FLOOR = 0.02
_CERTAIN = 0.25
_LEAST = 0.35


def votes(words: dict[str, float], neighbours: Sequence[Neighbour]) -> list[tuple[str, float, int]]:
    """(tag, confidence between 0.3 and 0.9, how many items say so), the surest first.

    Each tag is heard twice: by its items that are nearest, and by all its items together, which share words that no single one has.
    """
    space = WordSpace([neighbour.words for neighbour in neighbours])
    mine = space.vector(words)
    likenesses = ((mine.cosine(space.vector(neighbour.words)), neighbour.tags) for neighbour in neighbours)
    near = sorted(likenesses, key=lambda pair: -pair[0])[:_ASKED]
    near = [(likeness, tags) for likeness, tags in near if likeness >= _FLOOR]
    if not near:
        return []
    said: defaultdict[str, float] = defaultdict(float)
    times: Counter[str] = Counter(tag for _, tags in near for tag in tags)
    whole = _by_tag(neighbours, times)
    for likeness, tags in near:
        for tag in tags:
            said[tag] += likeness
    together = {tag: mine.cosine(space.vector(whole[tag])) for tag in said}
    total = sum(said.values()) + sum(together.values())
    found = [(tag, _confidence(said[tag] + together[tag], total, together[tag]), times[tag]) for tag in said]
    return sorted((one for one in found if one[1] >= _LEAST), key=lambda one: (-one[1], one[0]))


def _confidence(said: float, total: float, together: float) -> float:
    """Sure is what one tag alone says, and says clearly."""
    return round(0.3 + 0.6 * said / total * sqrt(min(1.0, together / _CERTAIN)), 2)


def _by_tag(neighbours: Sequence[Neighbour], tags: Mapping[str, int]) -> dict[str, dict[str, float]]:
    whole: dict[str, dict[str, float]] = {tag: defaultdict(float) for tag in tags}
    for neighbour in neighbours:
        for tag in neighbour.tags:
            if tag in whole:
                for word, weight in neighbour.words.items():
                    whole[tag][word] += weight
    return whole
