"""Tags by example: those of the user's most similar items."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt

from refract.library.enrichment.types import NeighbourItem
from refract.library.likeness import WordSpace

_MAX_NEIGHBOURS = 7
_MIN_SIMILARITY = 0.02
_CERTAIN_SIMILARITY = 0.25
_MIN_CONFIDENCE = 0.35


def score_tags(
    words: dict[str, float], neighbours: Sequence[NeighbourItem]
) -> list[tuple[str, float, int]]:
    """Return (tag, confidence between 0.3 and 0.9, number of items), most confident first.

    A tag counts by its nearest items, and by all its items together, which share words that no
    single one has.
    """
    space = WordSpace([neighbour.words for neighbour in neighbours])
    mine = space.build_vector(words)
    likenesses = (
        (mine.compute_cosine(space.build_vector(neighbour.words)), neighbour.tags)
        for neighbour in neighbours
    )
    near = sorted(likenesses, key=lambda pair: -pair[0])[:_MAX_NEIGHBOURS]
    near = [(likeness, tags) for likeness, tags in near if likeness >= _MIN_SIMILARITY]
    if not near:
        return []
    scores: defaultdict[str, float] = defaultdict(float)
    times: Counter[str] = Counter(tag for _, tags in near for tag in tags)
    whole = _sum_words_by_tag(neighbours, times)
    for likeness, tags in near:
        for tag in tags:
            scores[tag] += likeness
    together = {tag: mine.compute_cosine(space.build_vector(whole[tag])) for tag in scores}
    total = sum(scores.values()) + sum(together.values())
    found = [
        (tag, _compute_confidence(scores[tag] + together[tag], total, together[tag]), times[tag])
        for tag in scores
    ]
    return sorted(
        (scored for scored in found if scored[1] >= _MIN_CONFIDENCE),
        key=lambda scored: (-scored[1], scored[0]),
    )


def _compute_confidence(score: float, total: float, together: float) -> float:
    """Return a high confidence if one tag alone matches, and matches clearly."""
    return round(0.3 + 0.6 * score / total * sqrt(min(1.0, together / _CERTAIN_SIMILARITY)), 2)


def _sum_words_by_tag(
    neighbours: Sequence[NeighbourItem], tags: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    whole: dict[str, dict[str, float]] = {tag: defaultdict(float) for tag in tags}
    for neighbour in neighbours:
        for tag in neighbour.tags:
            if tag in whole:
                for word, weight in neighbour.words.items():
                    whole[tag][word] += weight
    return whole
