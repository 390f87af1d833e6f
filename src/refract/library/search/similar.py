"""Similar items, by their words.

Lexical, over the same index as search, and so the same on three databases.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select

from refract.core.db.session import ReadSession
from refract.core.words import encode_word, query_terms
from refract.library.item_tags import get_item_tags
from refract.library.likeness import WordSpace
from refract.library.models import Item, ItemStatus
from refract.library.search.match import build_match_clause, get_search_source
from refract.library.search.terms import TITLE, TokenMatch

MAX_CANDIDATES = 300
_MAX_WORDS = 16
_MIN_WORD_LENGTH = 3
_TAG_WEIGHT, _TITLE_WEIGHT, _SITE_WEIGHT = 2.0, 1.5, 0.5


async def find_similar_items(
    session: ReadSession, item: Item, limit: int
) -> list[tuple[Item, float]]:
    """Return the user's confirmed items that share words with this one, most similar first.

    Each has a similarity between 0 and 1. Candidates are the latest with one of its distinctive
    words in their title or tags; rare words count for more. Four queries.
    """
    tags = [tag.name for tag in (await get_item_tags(session, [item.id]))[item.id]]
    mine = _build_features(item, tags)
    distinctive = _select_words([*tags, item.title or "", item.summary or ""])
    if not distinctive:
        return []
    ids = await _find_candidate_ids(session, item, distinctive)
    items = list(await session.scalars(select(Item).where(Item.id.in_(ids)))) if ids else []
    tags_by_item = await get_item_tags(session, ids)
    names = {item_id: [tag.name for tag in found] for item_id, found in tags_by_item.items()}
    return (await asyncio.to_thread(_score_items, mine, items, names))[:limit]


def _score_items(
    mine: dict[str, float], items: Sequence[Item], tags: Mapping[int, Sequence[str]]
) -> list[tuple[Item, float]]:
    """Compare hundreds of summaries. Slow: call it in a thread."""
    features = {item.id: _build_features(item, tags[item.id]) for item in items}
    space = WordSpace([mine, *features.values()])
    vector = space.build_vector(mine)
    scored = [
        (item, round(vector.compute_cosine(space.build_vector(features[item.id])), 4))
        for item in items
    ]
    return sorted(
        ((item, score) for item, score in scored if score > 0),
        key=lambda pair: (-pair[1], -pair[0].id),
    )


async def _find_candidate_ids(session: ReadSession, item: Item, words: Sequence[str]) -> list[int]:
    indexed, item_id = get_search_source(session.dialect)
    match = TokenMatch(item.user_id, [tuple(encode_word(TITLE, word) for word in words)])
    query = select(item_id).select_from(indexed).join(Item, Item.id == item_id)
    others = (Item.user_id == item.user_id, Item.status == ItemStatus.ARCHIVED, Item.id != item.id)
    query = query.where(*others, build_match_clause(session.dialect, match))
    return list(await session.scalars(query.order_by(item_id.desc()).limit(MAX_CANDIDATES)))


def _select_words(texts: Iterable[str]) -> list[str]:
    """Return words long enough to be distinctive, those of tags and title first.

    For scripts without spaces a pair of characters is long enough.
    """
    found: dict[str, None] = {}
    for text in texts:
        found.update(
            dict.fromkeys(
                word
                for word in query_terms(text)
                if len(word) >= _MIN_WORD_LENGTH or not word.isascii()
            )
        )
    return list(found)[:_MAX_WORDS]


def _build_features(item: Item, tags: Iterable[str]) -> dict[str, float]:
    """Return the words that an item is about, with their weights."""
    found: dict[str, float] = {}
    for weight, texts in (
        (_TAG_WEIGHT, tags),
        (_TITLE_WEIGHT, [item.title or ""]),
        (1.0, [item.summary or ""]),
    ):
        for word in {word for text in texts for word in _select_words([text])}:
            found[word] = max(found.get(word, 0.0), weight)
    if item.site:
        found[f"@{item.site}"] = _SITE_WEIGHT
    return found
