"""Claiming and releasing names.

The primary key of the table decides every race; nothing is checked first and inserted later.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import delete, update

from refract.core.clock import Clock
from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.errors import RefractError
from refract.core.ids import IdSource, draw_link_id, encode_base62, get_min_id
from refract.core.runtime import Runtime
from refract.limits.shared_limits import MissLimit
from refract.names import queries, similarity
from refract.names.enums import NameTarget
from refract.names.errors import SlugTaken
from refract.names.grammar import (
    RESERVED_KEYS,
    build_stem,
    find_spellings,
    generate_code,
    is_kept,
    is_possible_code,
    iter_candidates,
    join_code,
    join_name,
    name_key,
    split_name,
    validate_code,
    validate_name,
)
from refract.names.models import Name
from refract.names.schemas import NameAvailability

MIN_CODE_ID = 62**9
"""The first id whose code has ten characters; ids reach it 37 days after their epoch."""
CODE_MARGIN = timedelta(minutes=1)
"""Codes of ids this close to now count as taken: their links may not be committed yet."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """The sources and rules for names and codes, beside the table itself."""

    ids: IdSource
    clock: Clock
    random_codes: bool = False
    """Whether new links get a random code instead of one derived from their id."""
    reserved: frozenset[str] = RESERVED_KEYS
    """Comparison keys that no name and no code may have."""


def namespace_of(rt: Runtime) -> Namespace:
    """Return the namespace of this installation, the same for servers and commands."""
    return Namespace(rt.ids, rt.clock, rt.settings.codes == "random")


async def claim_names(
    session: WriteSession,
    space: Namespace,
    kind: NameTarget,
    requested: Mapping[int, Sequence[str]],
    hosts: Mapping[int, str] | None = None,
    *,
    codes: Mapping[int, Sequence[str]] | None = None,
    claimant: int | None = None,
) -> dict[int, RefractError]:
    """Give each target all of its requested names or none; return the errors of the latter.

    The names are bare. `hosts` has the domains of targets that are not on the default one, `codes`
    the codes that an import keeps for targets. Targets that request the same name are served in the
    given order. `claimant` is the user who may use the spellings and subpaths of names of theirs.
    """
    wanted = _RequestedNames(kind, requested, hosts or {}, codes or {})
    keys, refused = await _validate_requested(session, space, wanted)
    contested: dict[str, tuple[int, str]] = {}
    rows: list[dict[str, Any]] = []
    now = space.clock.now()
    for target, names in keys.items():
        for place, (key, name) in enumerate(names.items()):
            if contested.setdefault(key, (target, name)) == (target, name):
                rows.append(
                    _build_row(key, name, kind, target, now + timedelta(microseconds=place))
                )  # keeps the order of the request
    claims = _build_stem_claims(contested, now)
    await insert_if_absent(session, Name, sorted((*rows, *claims), key=itemgetter("key")))
    holders, shadowing = await _load_holders(session, contested, claims, claimant)
    granted: dict[str, tuple[int, str]] = {}
    for target, names in keys.items():
        lost = next(
            (
                name
                for key, name in names.items()
                if holders.get(key) not in keys or key in granted or key in shadowing
            ),
            None,
        )
        if lost is None:
            granted |= {key: (target, name) for key, name in names.items()}
        else:
            refused[target] = SlugTaken(name=split_name(lost)[1])
    await _reassign_names(
        session,
        {key: holder for key, holder in contested.items() if holders.get(key) in keys},
        granted,
    )
    return refused


async def assign_codes(
    session: WriteSession,
    space: Namespace,
    requested: Mapping[int, str | None],
    hosts: Mapping[int, str] | None = None,
) -> dict[int, str]:
    """Give each link a random code, or the requested one if it is available; return them.

    The primary key decides here too: a taken code is replaced by a new random one. `hosts` is as in
    `claim_names`.
    """
    found: dict[int, str] = {}
    left = dict(requested)
    while missing := [target for target in requested if target not in found]:
        drawn: dict[str, tuple[int, str]] = {}
        for target in missing:
            host, code = (hosts or {}).get(target, ""), left.pop(target, None) or generate_code()
            if host or code not in space.reserved:
                drawn[name_key(join_name(host, code))] = target, join_name(host, code)
        now = space.clock.now()
        rows = [
            _build_row(key, code, NameTarget.LINK, target, now, generated=True)
            for key, (target, code) in sorted(drawn.items())
        ]
        await insert_if_absent(session, Name, rows)
        holders, kept = await queries.find_holders(session, list(drawn))
        lost = {key for key in kept if key in holders and holders[key].target_id == drawn[key][0]}
        await _delete_keys(session, lost)
        found |= {
            target: split_name(code)[1]
            for key, (target, code) in drawn.items()
            if key not in lost and key in holders and holders[key].target_id == target
        }
    return found


async def claim_names_for(
    session: WriteSession,
    space: Namespace,
    kind: NameTarget,
    target: int,
    names: Sequence[str],
    host: str | None = None,
    *,
    claimant: int | None = None,
) -> None:
    """Give one target all of these names on a domain, or raise the reason."""
    refused = await claim_names(
        session, space, kind, {target: names}, {target: host or ""}, claimant=claimant
    )
    if target in refused:
        raise refused[target]


async def release_names(
    session: WriteSession, kind: NameTarget, target: int, keys: Collection[str] | None = None
) -> int:
    """Release these names of a target, or all of them; return how many there were."""
    query = delete(Name).where(Name.kind == kind, Name.target_id == target)
    if keys is not None:
        query = query.where(Name.key.in_(keys), ~Name.generated)
    return get_rowcount(await session.execute(query))


async def hold_names(
    session: WriteSession, kind: NameTarget, target: int, until: datetime | None
) -> int:
    """Reserve the names of a deleted target until then; None ends that after a restore.

    Return how many names it has.
    """
    names = update(Name).where(Name.kind == kind, Name.target_id == target).values(held_until=until)
    return get_rowcount(await session.execute(names.execution_options(synchronize_session=False)))


async def release_expired_names(session: WriteSession, now: datetime) -> int:
    """Release the names that were reserved until now; return how many there were."""
    return get_rowcount(await session.execute(delete(Name).where(Name.held_until <= now)))


def may_spell_code(space: Namespace, name: str) -> bool:
    """Return whether a name spells, in some mixture of cases, a code that a link may have.

    Whether such a name can be had tells whether the link exists, so requests for one are counted
    like requests for the code itself. Shorter codes belong to no link that was made since 2024.
    """
    return bool(find_spellings(name_key(name), MIN_CODE_ID, _get_newest_id(space)))


def check_code_guess(rt: Runtime, segment: str, network: str, user_id: int | None = None) -> None:
    """Raise `RateLimited` if a segment may be a code and the caller has used up its misses.

    Call it before the lookup: how long that takes tells whether the code exists.
    """
    misses = rt.singleton(MissLimit)
    if rt.clock.now_ns() >= misses.exhausted_until_ns:
        return
    space = namespace_of(rt)
    if any(may_spell_code(space, candidate.name) for candidate in iter_candidates(segment)):
        misses.check_code(network, user_id)


async def check_availability(
    session: ReadSession, space: Namespace, name: str, kind: NameTarget, host: str | None = None
) -> NameAvailability:
    """Return whether a name is available now on a domain, and if not, the reason."""
    try:
        key = validate_name(name, kind, space.reserved, host=host or "")
        if key in await queries.find_taken_keys(session, [key]) or key in await _find_code_clashes(
            session, space, [key]
        ):
            raise SlugTaken(name=name)
    except RefractError as exc:
        return NameAvailability(name=name, available=False, reason=exc.code, detail=exc.message)
    return NameAvailability(name=name, available=True, reason=None, detail=None)


async def allocate_ids(
    session: ReadSession, space: Namespace, count: int, hosts: Collection[str] = ("",)
) -> list[int]:
    """Return new ids in ascending order whose codes match no taken or reserved name.

    `hosts` are the domains that they are for.
    """
    found: list[int] = []
    while len(found) < count:
        fresh = {
            number: {name_key(join_name(host, encode_base62(number))) for host in hosts}
            for number in space.ids.next_ids(count - len(found))
        }
        taken = await queries.find_taken_keys(session, set().union(*fresh.values()))
        taken |= space.reserved
        found += [number for number, keys in fresh.items() if taken.isdisjoint(keys)]
    return found


@dataclass(frozen=True, slots=True)
class _RequestedNames:
    """The bare names and kept codes that targets request, and the domains of those targets."""

    kind: NameTarget
    names: Mapping[int, Sequence[str]]
    hosts: Mapping[int, str]
    codes: Mapping[int, Sequence[str]]

    def validate(self, target: int, space: Namespace) -> dict[str, str]:
        """Return the texts of a target by key, or raise what is wrong with one."""
        host = self.hosts.get(target, "")
        by_key: dict[str, str] = {}
        for name in self.names.get(target, ()):
            key = validate_name(name, self.kind, space.reserved, host=host)
            by_key.setdefault(key, join_name(host, name))  # of equal names the first counts
        for code in self.codes.get(target, ()):
            by_key[validate_code(code, host)] = join_code(host, code)
        return by_key


async def draw_past_ids(
    session: ReadSession,
    space: Namespace,
    created: Mapping[int, datetime],
    hosts: Collection[str] = ("",),
) -> dict[int, int]:
    """Return a new id for each link that was created elsewhere at a time of the past.

    Like those of `allocate_ids` they match no name, and no link ever had one. If another process
    draws the same one now, the primary key decides.
    """
    found: dict[int, int] = {}
    while missing := [index for index in created if index not in found]:
        drawn = {index: draw_link_id(created[index]) for index in missing}
        keys = {
            number: {name_key(join_name(host, encode_base62(number))) for host in hosts}
            for number in drawn.values()
        }
        taken = await queries.find_taken_keys(session, set().union(*keys.values()))
        taken |= space.reserved
        used = await queries.find_ids_ever_used(session, list(keys))
        for index, number in drawn.items():
            if number not in used and taken.isdisjoint(keys[number]):
                found[index] = number
                used.add(number)
    return found


async def _validate_requested(
    session: ReadSession, space: Namespace, wanted: _RequestedNames
) -> tuple[dict[int, dict[str, str]], dict[int, RefractError]]:
    """Return the texts of the requested names by target and key, and the errors by target."""
    keys: dict[int, dict[str, str]] = {}
    refused: dict[int, RefractError] = {}
    for target in dict.fromkeys((*wanted.names, *wanted.codes)):
        try:
            keys[target] = wanted.validate(target, space)
        except RefractError as exc:
            refused[target] = exc
    mistakable = await _find_code_clashes(
        session, space, {_get_stem(key) for by_key in keys.values() for key in by_key}
    )
    for target, by_key in list(keys.items()):
        if clash := next(
            (name for key, name in by_key.items() if _get_stem(key) in mistakable), None
        ):
            refused[target] = SlugTaken(name=split_name(clash)[1])
            del keys[target]
    return keys, refused


async def _find_code_clashes(
    session: ReadSession, space: Namespace, keys: Collection[str]
) -> set[str]:
    """Return the keys that spell a code in some mix of cases.

    The code may be of an existing link on the same domain, or of an id of about this minute.
    """
    bare = {key: split_name(key)[1] for key in keys}
    if not any(map(is_possible_code, bare.values())):
        return set()
    oldest = await queries.get_lowest_id(session)
    recent = get_min_id(space.clock.now() - CODE_MARGIN)
    low = recent if oldest is None else min(oldest, recent)
    newest = _get_newest_id(space)
    by_key = {key: find_spellings(code, low, newest) for key, code in bare.items()}
    clashing = {key for key, numbers in by_key.items() if numbers and numbers[-1] >= recent}
    candidates = {
        key: set(numbers) for key, numbers in by_key.items() if numbers and key not in clashing
    }
    used = await queries.find_used_ids(session, set().union(*candidates.values()))
    return clashing | {
        key
        for key, numbers in candidates.items()
        if any(used.get(number) == split_name(key)[0] for number in numbers)
    }


def _get_newest_id(space: Namespace) -> int:
    return get_min_id(space.clock.now() + CODE_MARGIN)


def _build_row(
    key: str, name: str, kind: NameTarget, target: int, at: datetime, *, generated: bool = False
) -> dict[str, Any]:
    """Return a row of the table.

    Generated names and those on other domains have no parts: they are not suggested. Suggestions
    are for signed-in users, and no user is signed in on another domain.
    """
    hidden = generated or is_kept(key) or key.startswith("/")
    head, middle, tail = ("", "", "") if hidden else similarity.split_key(key)
    return {
        "key": key,
        "name": name,
        "kind": kind.value,
        "target_id": target,
        "head": head,
        "middle": middle,
        "tail": tail,
        "created_at": at,
        "generated": generated,
        "stem": build_stem(key) if is_kept(key) else None,
    }


def _get_stem(key: str) -> str:
    """Return the key of the name that a path is read as, if no kept code is in the way."""
    return build_stem(key) if is_kept(key) else key


def _build_stem_claims(
    contested: Mapping[str, tuple[int, str]], now: datetime
) -> list[dict[str, Any]]:
    """Return rows that claim the stems of kept codes until both sides have been compared.

    The primary key makes a concurrent claim of such a name wait, so one of the two sees the other.
    """
    stems = {build_stem(key): target for key, (target, _) in contested.items() if is_kept(key)}
    return [
        _build_row(stem, stem, NameTarget.LINK, target, now, generated=True)
        for stem, target in stems.items()
        if stem not in contested
    ]


async def _load_holders(
    session: WriteSession,
    contested: Mapping[str, tuple[int, str]],
    claims: Sequence[Mapping[str, Any]],
    claimant: int | None,
) -> tuple[dict[str, int], set[str]]:
    """Return the targets of keys, and those keys that other people's names or codes rule out.

    A kept code and a name rule each other out if the path of one could be read as the other and
    their owners differ, or if both are spelled alike.
    """
    stems = {key: _get_stem(key) for key in contested}
    exact = {key: join_code(*split_name(text)) for key, (_, text) in contested.items()}
    targets = {target for target, _ in contested.values()}
    keys = {*contested, *stems.values(), *exact.values()}
    held, foreign = await queries.find_rivals(session, keys, claimant, targets)
    stem_holders = {row["key"]: row["target_id"] for row in claims}
    ours = {key for key, target in stem_holders.items() if held[key].target_id == target}
    await _delete_keys(session, ours)
    rivals = {
        key: [
            holder
            for holder in (foreign.get(stem), held.get(stem), held.get(exact[key]))
            if holder is not None
            and holder.target_id not in targets
            and not (stem in ours and holder is held[stem])
        ]
        for key, stem in stems.items()
    }
    rivals = {key: others for key, others in rivals.items() if others and key in held}
    linked = {holder.target_id for others in rivals.values() for holder in others}
    owned = await queries.find_owned_links(session, claimant, linked)
    shadowing = {
        key
        for key, others in rivals.items()
        if any(
            holder.target_id not in owned
            or holder.kind == NameTarget.LIST
            or split_name(holder.name) == split_name(contested[key][1])
            for holder in others
        )
    }
    return {key: holder.target_id for key, holder in held.items() if key in contested}, shadowing


async def _delete_keys(session: WriteSession, keys: Collection[str]) -> None:
    for batch in iter_batches(sorted(keys)):
        await session.execute(
            delete(Name).where(Name.key.in_(batch)).execution_options(synchronize_session=False)
        )


async def _reassign_names(
    session: WriteSession,
    inserted: Mapping[str, tuple[int, str]],
    granted: Mapping[str, tuple[int, str]],
) -> None:
    """Delete or reassign rows inserted for a target that lost another of its names."""
    await _delete_keys(session, [key for key in inserted if key not in granted])
    for key, (target, name) in granted.items():
        if inserted[key] != (target, name):
            await session.execute(
                update(Name).where(Name.key == key).values(target_id=target, name=name)
            )
