"""What every call about lists shares: looking at addresses, paying for them, and what a list looks like to its maker."""

from collections.abc import Sequence

from refract.core.db import ReadSession, WriteSession
from refract.core.errors import RefractError, Unavailable
from refract.core.runtime import Runtime
from refract.core.text import shown as shown_text
from refract.identity.errors import BadCredentials, MissingScope, OriginUnproven
from refract.limits.errors import RateLimited
from refract.limits.service import charge, charge_up_to
from refract.links.safety_errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.lists import addresses, blocks, queries, service
from refract.lists.creators import Visitor
from refract.lists.errors import AnonymousListsOff, ListNotFound, NamesNeedAccount, PublishingNeedsAccount, SensitiveName
from refract.lists.fetching import look_later
from refract.lists.models import LinkList, ListEntry
from refract.lists.schemas import EntriesResult, EntryOut, EntryResult, ListCreate, ListOut, error_of
from refract.lists.service import Address
from refract.lists.shown import Line, lines, whole
from refract.names.grammar import is_sensitive_name
from refract.names.service import Namespace
from refract.web.problems import ValidationFailed, problems

ASKING = (AnonymousListsOff, BadCredentials, MissingScope, OriginUnproven, RateLimited, Unavailable, ValidationFailed)
BAD_ADDRESS = (InvalidUrl, LinkLoop, BlockedDestination, MaliciousUrl)
ON_A_LIST = problems(*ASKING, ListNotFound)


async def start_list(session: WriteSession, rt: Runtime, space: Namespace, visitor: Visitor, new: ListCreate) -> LinkList:
    """Make a draft; a stranger's counts against their network."""
    await _pay_for_list(session, rt, visitor)
    return await service.create_list(session, space, visitor.who, new)


async def begin_edition(session: WriteSession, rt: Runtime, space: Namespace, visitor: Visitor, list_id: int) -> tuple[LinkList, bool]:
    """Begin the next edition, which counts as a list, and have looked at what nobody has looked at yet; or find the one begun before."""
    draft, made = await service.new_edition(session, space, visitor.who, list_id)
    if made:
        await _pay_for_list(session, rt, visitor)
        entries = [row.entry for row in await queries.entries_of(session, draft.id)]
        await look_later(session, rt, entries, visitor.who.user_id)
    return draft, made


async def choose_name(session: WriteSession, rt: Runtime, space: Namespace, visitor: Visitor, list_id: int, slug: str | None) -> LinkList:
    """Note the name of a draft. Somebody without an account may choose one only where it is allowed."""
    if slug is not None:
        _demand_name(rt, visitor, slug)
    return await service.wish_slug(session, space, visitor.who, list_id, slug)


async def publish_draft(session: WriteSession, rt: Runtime, space: Namespace, visitor: Visitor, list_id: int) -> LinkList:
    """Publish a draft under the name it wishes for; a stranger's gets a generated one unless they may choose."""
    draft = await service.hold_draft(session, visitor.who, list_id)
    if visitor.anonymous and rt.settings.effective_anonymous_lists != "publish":
        raise PublishingNeedsAccount
    if visitor.anonymous and draft.slug is not None and draft.family_id == draft.id:
        if rt.settings.anonymous_names:
            _demand_name(rt, visitor, draft.slug)
        else:
            await service.wish_slug(session, space, visitor.who, list_id, None)
    return await service.publish(session, space, visitor.who, list_id)


def _demand_name(rt: Runtime, visitor: Visitor, slug: str) -> None:
    if visitor.anonymous and not rt.settings.anonymous_names:
        raise NamesNeedAccount
    if visitor.anonymous and is_sensitive_name(slug):
        raise SensitiveName(name=shown_text(slug))


async def _pay_for_list(session: WriteSession, rt: Runtime, visitor: Visitor) -> None:
    if visitor.anonymous:
        limit = rt.settings.anonymous_lists_per_hour
        await charge(session, f"lists:{visitor.network}", 1, per_hour=limit, now=rt.clock.now())


async def look_at(rt: Runtime, url: str) -> Address:
    (found,) = await addresses.look_at(rt, [url])
    if isinstance(found, RefractError):
        raise found
    return found


async def add_one(session: WriteSession, rt: Runtime, space: Namespace, visitor: Visitor, list_id: int, address: Address) -> EntryOut:
    """Add an address, pay for it and have its page looked at, all or nothing."""
    (entry,) = await service.add_entries(session, space, visitor.who, list_id, [address])
    if visitor.anonymous:
        limit = rt.settings.anonymous_entries_per_hour
        await charge(session, f"entries:{visitor.network}", 1, per_hour=limit, now=rt.clock.now())
    await look_later(session, rt, [entry], visitor.who.user_id)
    return (await _outs(session, rt, [entry]))[entry.id]


async def add_many(
    session: WriteSession, rt: Runtime, space: Namespace, visitor: Visitor, list_id: int, found: Sequence[Address | RefractError]
) -> EntriesResult:
    """Each address is judged by itself; those past the limit are told so."""
    await service.hold_draft(session, visitor.who, list_id)
    good = [index for index, one in enumerate(found) if isinstance(one, Address)]
    refused: dict[int, RefractError] = {index: one for index, one in enumerate(found) if isinstance(one, RefractError)}
    if visitor.anonymous:
        limit = rt.settings.anonymous_entries_per_hour
        granted, _ = await charge_up_to(session, f"entries:{visitor.network}", len(good), per_hour=limit, now=rt.clock.now())
        late = RateLimited(limit=limit or 0, per="an hour", retry_after=3600 // (limit or 1))
        refused |= dict.fromkeys(good[granted:], late)
        good = good[:granted]
    wanted = [one for index in good if isinstance(one := found[index], Address)]
    entries = await service.add_entries(session, space, visitor.who, list_id, wanted)
    await look_later(session, rt, entries, visitor.who.user_id)
    outs = await _outs(session, rt, entries)
    by_index = {index: outs[entry.id] for index, entry in zip(good, entries, strict=True)}
    results = [
        EntryResult(index=index, status=201, entry=by_index[index])
        if index in by_index
        else EntryResult(index=index, status=refused[index].status, error=error_of(refused[index]))
        for index in range(len(found))
    ]
    return EntriesResult(results=results, created=len(by_index), failed=len(refused))


async def entry_out(session: ReadSession, rt: Runtime, entry: ListEntry) -> EntryOut:
    return (await _outs(session, rt, [entry]))[entry.id]


async def _outs(session: ReadSession, rt: Runtime, entries: Sequence[ListEntry]) -> dict[int, EntryOut]:
    """Entries of one list, as they stand in it."""
    if not entries:
        return {}
    alike = await queries.earlier_alike(session, entries)
    rows = await queries.entries_of(session, entries[0].list_id, [entry.id for entry in entries])
    blocked = await rt.part(blocks.BlockedDomains).now(session)
    shown = lines(rows, blocked, rt.clock.now())
    return {line.entry.id: line.out().model_copy(update={"duplicate": line.entry.id in alike}) for line in shown}


async def list_out(session: ReadSession, rt: Runtime, visitor: Visitor, list_id: int) -> ListOut:
    """The list as it is now, for its maker."""
    seen = await queries.view_list(session, visitor.who, list_id)
    return whole(seen, await shown_lines(session, rt, list_id, seen.epoch), rt.settings.public_url)


async def shown_lines(session: ReadSession, rt: Runtime, list_id: int, epoch: int) -> list[Line]:
    rows = await queries.entries_of(session, list_id)
    return lines(rows, await rt.part(blocks.BlockedDomains).as_of(session, epoch), rt.clock.now())
