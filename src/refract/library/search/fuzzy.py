"""Parts of words and typing errors in titles and hosts.

Needs trigrams: PostgreSQL with `pg_trgm`.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, or_, select, text
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.session import ReadSession
from refract.library.models import Item

MIN_WORD_LENGTH = 3
"""A shorter word has no trigram of its own."""
SIMILARITY_THRESHOLD = "0.4"
"""The share of a word's trigrams that must match.

Two swapped letters in a word of eight still do.
"""


async def find_near_titles(
    session: ReadSession,
    user_id: int,
    words: Sequence[str],
    condition: ColumnElement[bool],
    limit: int,
) -> list[Item]:
    """Return items whose title or host is similar to every word, most similar first.

    Returns nothing on a database without trigrams.
    """
    if session.dialect != "postgresql" or any(len(word) < MIN_WORD_LENGTH for word in words):
        return []
    if not await session.scalar(text("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")):
        return []
    await session.execute(
        select(func.set_config("pg_trgm.word_similarity_threshold", SIMILARITY_THRESHOLD, True))
    )  # this transaction's
    near = [
        or_(
            _build_contains_clause(Item.title, word),
            _build_contains_clause(Item.site, word),
            Item.title.op("%>", is_comparison=True)(word),
        )
        for word in words
    ]
    title = func.coalesce(Item.title, "")
    score = sum(
        (func.word_similarity(word, title) for word in words[1:]),
        func.word_similarity(words[0], title),
    )
    query = select(Item).where(Item.user_id == user_id, condition, *near)
    return list(await session.scalars(query.order_by(score.desc(), Item.id.desc()).limit(limit)))


def _build_contains_clause(
    column: InstrumentedAttribute[str | None], word: str
) -> ColumnElement[bool]:
    return column.icontains(word, autoescape=True)
