"""Queries about names."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Select,
    String,
    bindparam,
    case,
    column,
    exists,
    func,
    literal,
    select,
    table,
    union_all,
)

from refract.core.db.bulk import iter_batches
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.names import similarity
from refract.names.enums import NameTarget
from refract.names.grammar import name_key
from refract.names.models import Name

_MAX_SIMILAR = 500
_AFTER_ALL_KEYS = "~"
"""Sorts after every character of a key."""
_IS_LIVE = case((Name.held_until.is_(None), 1), else_=0) == 1
"""Names of deleted targets stay reserved and are not suggested.

Not a bare comparison: SQLite would read all live names by the index of those that are held.
"""
_LINKS = table(
    "links", column("id", BigInteger), column("random_code", String), column("domain", String)
)
"""The table of links, which belongs to a feature above.

Codes are derived from its ids, except where a link has a random one.
"""


_TOMBSTONES = table("link_tombstones", column("link_id", BigInteger))
"""The ids of purged links, of the same feature."""


async def find_names(session: ReadSession, keys: Collection[str]) -> dict[str, Name]:
    """Return the taken names among these keys, by key."""
    found: dict[str, Name] = {}
    for batch in iter_batches(sorted(keys)):
        found |= {
            name.key: name
            for name in await session.scalars(select(Name).where(Name.key.in_(batch)))
        }
    return found


async def find_taken_keys(session: ReadSession, keys: Collection[str]) -> set[str]:
    """Return the keys that are those of taken names, or in the way of kept codes."""
    found: set[str] = set()
    for batch in iter_batches(sorted(keys)):
        found.update(key for (key,) in await session.fetch(_TAKEN_KEYS, keys=batch))
    return found


_KEYS: BindParameter[Any] = bindparam("keys", expanding=True)
_TAKEN_KEYS = PreparedSelect(
    lambda: select(
        *union_all(
            select(Name.key).where(Name.key.in_(_KEYS)),
            select(Name.stem).where(Name.stem.in_(_KEYS)),
        )
        .subquery("taken")
        .c
    )
)


@dataclass(frozen=True, slots=True)
class NameHolder:
    """A taken name: its text and what it leads to."""

    name: str
    kind: str
    target_id: int


async def find_holders(
    session: ReadSession, keys: Collection[str]
) -> tuple[dict[str, NameHolder], dict[str, list[NameHolder]]]:
    """Return the names with these keys, and the kept codes with these stems. One query."""
    held: dict[str, NameHolder] = {}
    kept: dict[str, list[NameHolder]] = {}
    for batch in iter_batches(sorted(keys)):
        for is_kept, key, *facts in await session.fetch(_HOLDERS, keys=batch):
            holder = NameHolder(*facts)
            if is_kept:
                kept.setdefault(key, []).append(holder)
            else:
                held[key] = holder
    return held, kept


def _select_holders() -> Select[*tuple[Any, ...]]:
    facts = (Name.name, Name.kind, Name.target_id)
    named = select(literal(0).label("kept"), Name.key, *facts).where(Name.key.in_(_KEYS))
    kept = select(literal(1), Name.stem, *facts).where(Name.stem.in_(_KEYS))
    return select(*union_all(named, kept).subquery("holders").c)


_HOLDERS = PreparedSelect(_select_holders)
_OWNERS = table("link_owners", column("link_id", BigInteger), column("user_id", BigInteger))
"""The owners of links, which belong to a feature above."""


async def find_rivals(
    session: ReadSession,
    keys: Collection[str],
    claimant: int | None,
    targets: Collection[int],
) -> tuple[dict[str, NameHolder], dict[str, NameHolder]]:
    """Return the names with these keys, and for each stem one kept code of another person.

    Codes of `targets`, which are being claimed, are left out. One query that returns few rows: an
    import may have a hundred thousand codes with the same stem.
    """
    held: dict[str, NameHolder] = {}
    foreign: dict[str, NameHolder] = {}
    given = {"claimant": claimant or 0, "targets": sorted(targets) or [0]}
    for batch in iter_batches(sorted(keys)):
        for is_kept, key, *facts in await session.fetch(_RIVALS, keys=batch, **given):
            (foreign if is_kept else held)[key] = NameHolder(*facts)
    return held, foreign


def _select_rivals() -> Select[*tuple[Any, ...]]:
    named = select(literal(0).label("kept"), Name.key, Name.name, Name.kind, Name.target_id).where(
        Name.key.in_(_KEYS)
    )
    owned = exists().where(
        _OWNERS.c.link_id == Name.target_id,
        _OWNERS.c.user_id == bindparam("claimant", type_=BigInteger),
    )
    targets = bindparam("targets", expanding=True, type_=BigInteger)
    first = (func.min(Name.name), func.min(Name.kind), func.min(Name.target_id))
    kept = (
        select(literal(1), Name.stem, *first)
        .where(Name.stem.in_(_KEYS), Name.target_id.not_in(targets), ~owned)
        .group_by(Name.stem)
    )
    return select(*union_all(named, kept).subquery("rivals").c)


_RIVALS = PreparedSelect(_select_rivals)


async def find_owned_links(
    session: ReadSession, user_id: int | None, link_ids: Collection[int]
) -> set[int]:
    """Return which of these links a user owns; None owns nothing."""
    if user_id is None or not link_ids:
        return set()
    found: set[int] = set()
    for batch in iter_batches(sorted(link_ids)):
        owned = select(_OWNERS.c.link_id).where(
            _OWNERS.c.user_id == user_id, _OWNERS.c.link_id.in_(batch)
        )
        found.update(await session.scalars(owned))
    return found


async def find_shadowed_links(session: ReadSession, stems: Collection[str]) -> list[int]:
    """Return the links whose paths kept codes with these stems may take over."""
    found: list[int] = []
    for batch in iter_batches(sorted(stems)):
        query = select(Name.target_id).where(Name.key.in_(batch), Name.kind == NameTarget.LINK)
        found += await session.scalars(query)
    return found


async def find_names_with_prefix(session: ReadSession, typed: str, limit: int) -> list[Name]:
    """Return names that begin with a text, by key.

    A range of the primary key, which every database reads along the index.
    """
    key = name_key(typed)
    within = (Name.key >= key, Name.key < key + _AFTER_ALL_KEYS, _IS_LIVE, ~Name.generated)
    query = select(Name).where(*within).order_by(Name.key).limit(limit)
    return list(await session.scalars(query))


async def list_names(
    session: ReadSession, kind: NameTarget, target_ids: Collection[int]
) -> dict[int, list[str]]:
    """Return the chosen names of each target as they were typed, oldest first.

    Those on other domains are written after their host.
    """
    found: dict[int, list[str]] = {target_id: [] for target_id in target_ids}
    for batch in iter_batches(sorted(target_ids)):
        for target_id, name in await session.fetch(_NAMES, kind=kind, target_ids=batch):
            found[target_id].append(name)
    return found


_NAMES = PreparedSelect(
    lambda: (
        select(Name.target_id, Name.name)
        .where(
            Name.kind == bindparam("kind"),
            Name.target_id.in_(bindparam("target_ids", expanding=True)),
            ~Name.generated,
        )
        .order_by(Name.created_at, Name.key)
    )
)


async def find_used_ids(session: ReadSession, candidates: Collection[int]) -> dict[int, str]:
    """Return the ids whose codes lead to a link, with its host, which is empty by default."""
    found: dict[int, str] = {}
    for batch in iter_batches(sorted(candidates), 2_048):
        query = select(_LINKS.c.id, _LINKS.c.domain).where(_LINKS.c.id.in_(batch))
        rows = await session.execute(query.where(_LINKS.c.random_code.is_(None)))
        found |= {link_id: host or "" for link_id, host in rows}
    return found


async def find_ids_ever_used(session: ReadSession, candidates: Collection[int]) -> set[int]:
    """Return the ids that links have or had."""
    found: set[int] = set()
    for batch in iter_batches(sorted(candidates), 1_024):
        now = select(_LINKS.c.id).where(_LINKS.c.id.in_(batch))
        before = select(_TOMBSTONES.c.link_id).where(_TOMBSTONES.c.link_id.in_(batch))
        found.update(await session.scalars(union_all(now, before)))
    return found


async def get_lowest_id(session: ReadSession) -> int | None:
    """Return the id of the oldest link, or None. No older code can be in use."""
    lowest: int | None = await session.scalar(select(func.min(_LINKS.c.id)))
    return lowest


@dataclass(frozen=True, slots=True, order=True)
class SimilarName:
    """A name similar to a text. Sorts in the order in which names are suggested."""

    edits: int
    key: str
    name: str
    kind: str
    target_id: int


async def find_similar_names(session: ReadSession, typed: str) -> list[SimilarName]:
    """Return names at most two edits away from a text, nearest first, then by name.

    The text itself is never among them. The cost is bounded for any number of names: three
    indexed lookups of at most 500 rows each.
    """
    key = similarity.replace_invalid(name_key(typed[: similarity.MAX_LENGTH + 1]))
    if not similarity.MIN_LENGTH <= len(key) <= similarity.MAX_LENGTH:
        return []
    found: set[SimilarName] = set()
    for part, parts in zip(
        (Name.head, Name.middle, Name.tail), similarity.generate_parts(key), strict=True
    ):
        query = (
            select(Name.key, Name.name, Name.kind, Name.target_id)
            .where(part.in_(parts), _IS_LIVE)
            .limit(_MAX_SIMILAR)
        )
        for other, name, kind, target_id in await session.execute(query):
            edits = similarity.edit_distance(key, other)
            if edits and edits < max(len(key), len(other)):  # at least one character is right
                found.add(SimilarName(edits, other, name, kind, target_id))
    return sorted(found)
