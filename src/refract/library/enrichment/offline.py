"""The offline tier: no network, no model, a few milliseconds.

Tags come from rules, the page's own words, and the user's most similar items.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

from refract.core.text import fold_text
from refract.library.enrichment.language import (
    count_run,
    extract_key_phrases,
    is_cjk,
    stem_words,
    weigh_words,
)
from refract.library.enrichment.reasons import (
    FREQUENCY_REASON,
    KEYWORD_REASON,
    MENTIONS_REASON,
    RULE_REASON,
    TITLE_REASON,
    format_similar_reason,
)
from refract.library.enrichment.rules import is_match
from refract.library.enrichment.summary import summarize_text
from refract.library.enrichment.types import (
    EnrichmentInput,
    EnrichmentProposal,
    NeighbourItem,
    SuggestedTag,
    UserBackground,
)
from refract.library.likeness import WordSpace
from refract.library.recognition import extract_first_line
from refract.tags.errors import InvalidTag
from refract.tags.grammar import check_personal, personal_key

MAX_TITLE_LENGTH = 100
MAX_KNOWN_TAGS = 5
MAX_NEW_TAGS = 3
_MAX_TEXT_LENGTH = 30_000
_SHORT_NOTE = 280


def describe_offline(
    material: EnrichmentInput, background: UserBackground, *, with_tags: bool = True
) -> EnrichmentProposal:
    """Return a title, a summary, and tags with a reason each."""
    return EnrichmentProposal(
        make_title(material),
        _make_summary(material),
        suggest_tags(material, background) if with_tags else [],
    )


def make_title(material: EnrichmentInput) -> str | None:
    if material.page is not None:
        return " ".join((material.page.title or "").split())[:255] or None
    return extract_first_line(material.text, MAX_TITLE_LENGTH) or None


def _make_summary(material: EnrichmentInput) -> str | None:
    """Return a summary, or None for a short note."""
    if material.page is None and len(material.text) < (
        _SHORT_NOTE // 3 if is_cjk(material.text) else _SHORT_NOTE
    ):
        return None
    description = material.page.description if material.page is not None else None
    return summarize_text(material.body[:_MAX_TEXT_LENGTH], material.headline, description)


def build_word_profile(title: str, summary: str, text: str) -> dict[str, float]:
    """Return an item's words as they are compared: the title counts most."""
    return weigh_words([(title, 3.0), (summary, 1.5), (text[:3000], 1.0)])


def suggest_tags(material: EnrichmentInput, background: UserBackground) -> list[SuggestedTag]:
    """Return tags, most confident first: those the user has, then a few new ones.

    Tags that the user has rejected, or that the item has already, are left out.
    """
    best: dict[str, SuggestedTag] = {}
    for candidate in _iter_candidates(material, background):
        try:
            name = check_personal(
                background.aliases.get(personal_key(candidate.name), candidate.name)
            )
        except InvalidTag:
            continue
        key = personal_key(name)
        name = background.vocabulary.get(key, name)
        if key not in background.unwanted and (
            key not in best or best[key].confidence < candidate.confidence
        ):
            best[key] = SuggestedTag(
                name, candidate.confidence, candidate.reason[:200], candidate.source
            )
    ranked = sorted(best.items(), key=lambda pair: (-pair[1].confidence, pair[0]))
    known = [
        candidate
        for key, candidate in ranked
        if key in background.vocabulary or candidate.confidence >= 0.9
    ]
    new = [
        candidate
        for key, candidate in ranked
        if not (key in background.vocabulary or candidate.confidence >= 0.9)
    ]
    return [
        *known[:MAX_KNOWN_TAGS],
        *new[: max(0, min(MAX_NEW_TAGS, MAX_KNOWN_TAGS + 1 - len(known[:MAX_KNOWN_TAGS])))],
    ]


def _iter_candidates(
    material: EnrichmentInput, background: UserBackground
) -> Iterator[SuggestedTag]:
    yield from _suggest_by_rules(material, background)
    yield from _suggest_by_keywords(material, background)
    yield from _suggest_by_vocabulary(material, background)
    yield from _suggest_by_neighbours(material, background)
    for phrase in extract_key_phrases(material.headline, material.body):
        yield SuggestedTag(phrase, 0.4, FREQUENCY_REASON)


def _suggest_by_rules(
    material: EnrichmentInput, background: UserBackground
) -> Iterator[SuggestedTag]:
    text = f"{material.headline}\n{material.body[:_MAX_TEXT_LENGTH]}"
    for rule in background.rules:
        if is_match(rule.pattern, material.url, text):
            yield from (
                SuggestedTag(tag, 0.95, RULE_REASON.format(pattern=rule.pattern))
                for tag in rule.tags
            )


def _suggest_by_keywords(
    material: EnrichmentInput, background: UserBackground
) -> Iterator[SuggestedTag]:
    for word in material.page.keywords if material.page is not None else ():
        known = (
            personal_key(word) in background.vocabulary or personal_key(word) in background.aliases
        )
        if known or len(word) <= 30:
            yield SuggestedTag(word, 0.85 if known else 0.45, KEYWORD_REASON)


def _suggest_by_vocabulary(
    material: EnrichmentInput, background: UserBackground
) -> Iterator[SuggestedTag]:
    title, body = material.headline, material.body[:_MAX_TEXT_LENGTH]
    in_title, in_body = stem_words(title), stem_words(body)
    for key, name in {**background.vocabulary, **background.aliases}.items():
        if _count_occurrences(key, title, in_title):
            yield SuggestedTag(name, 0.8, TITLE_REASON)
        elif (times := _count_occurrences(key, body, in_body)) >= 2:
            reason = MENTIONS_REASON.format(n=times)
            yield SuggestedTag(name, 0.6 if times < 5 else 0.65, reason)


def _count_occurrences(key: str, text: str, words: list[str]) -> int:
    return fold_text(text).count(key) if is_cjk(key) else count_run(stem_words(key), words)


def _suggest_by_neighbours(
    material: EnrichmentInput, background: UserBackground
) -> Iterator[SuggestedTag]:
    if background.neighbours:
        mine = build_word_profile(
            material.headline,
            (material.page.description or "") if material.page else "",
            material.body,
        )
        for tag, confidence, times in score_tags(mine, background.neighbours):
            yield SuggestedTag(tag, confidence, format_similar_reason(times))


# Tags by example: those of the user's most similar items.

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
