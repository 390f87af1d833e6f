"""Steps that API and pages of lists share: rate limits, names, entries, output."""

import asyncio
from collections.abc import Sequence

from refract.core.db.session import ReadSession, WriteSession
from refract.core.errors import RefractError
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.text import make_excerpt as shown_text
from refract.domains.errors import DomainNotAllowed
from refract.domains.hosts import to_other_host
from refract.domains.queries import DomainCaller, lock_usable_domain
from refract.limits.errors import RateLimited
from refract.limits.service import charge, charge_up_to
from refract.limits.shared_limits import MissLimit
from refract.links.safety import blocked_domains
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.lists import addresses, queries, service
from refract.lists.draft_owners import ListClient
from refract.lists.entry_jobs import enqueue_entry_jobs
from refract.lists.errors import AccountRequiredForName, AccountRequiredToPublish, SensitiveName
from refract.lists.models import LinkList, ListEntry
from refract.lists.presentation import (
    ListDetails,
    ResolvedEntry,
    build_list,
    resolve_entries,
)
from refract.lists.schemas import (
    EntriesResult,
    EntryOut,
    EntryPatch,
    EntryResult,
    ListCreate,
    ListOut,
    build_entry_error,
)
from refract.lists.service import CheckedAddress
from refract.names.grammar import is_sensitive_name
from refract.names.service import Namespace, may_spell_code
from refract.teams.errors import TeamNotFound
from refract.teams.ownership import lock_new_owner

BAD_ADDRESS = (InvalidUrl, LinkLoop, BlockedDestination, MaliciousUrl)
_BATCH_SIZE = 100
"""Entries that are prepared in one callback of the event loop: about 2 ms."""


async def start_list(
    session: WriteSession, rt: Runtime, space: Namespace, client: ListClient, new: ListCreate
) -> LinkList:
    """Create a draft, for a team if it names one.

    Without an account it counts against the network's limit. Other domains than the default one
    are for users who may create on them.
    """
    team = None
    if client.actor is not None:
        team = await lock_new_owner(session, client.actor.user, new.team)
    elif new.team is not None:
        raise TeamNotFound
    host = to_other_host(rt.settings.public_url, new.domain)
    await _lock_domain(session, client, host)
    await _charge_list(session, rt, client)
    placed = new.model_copy(update={"domain": host})
    return await service.create_list(session, space, client.caller, placed, team)


async def _lock_domain(session: WriteSession, client: ListClient, host: str | None) -> None:
    """Lock a domain on which the caller may publish; the default one needs no lock."""
    if host is None:
        return
    if client.caller.user_id is None:
        raise DomainNotAllowed(host=host)
    caller = DomainCaller(client.caller.user_id, client.caller.is_admin)
    await lock_usable_domain(session, caller, host)


async def begin_edition(
    session: WriteSession, rt: Runtime, space: Namespace, client: ListClient, list_id: int
) -> tuple[LinkList, bool]:
    """Return the draft of the next edition, and whether it is new.

    A new one counts as a list, and its unfetched entries are enqueued.
    """
    draft, made = await service.create_edition(session, space, client.caller, list_id)
    if made:
        await _charge_list(session, rt, client)
        entries = [row.entry for row in await queries.list_entries(session, draft.id)]
        await enqueue_entry_jobs(session, rt, entries, client.caller.user_id)
    return draft, made


async def choose_domain(
    session: WriteSession, rt: Runtime, client: ListClient, list_id: int, typed: str
) -> None:
    """Set the domain on which a draft will be published; an empty host means the default one."""
    host = to_other_host(rt.settings.public_url, typed)
    draft = await service.get_draft(session, client.caller, list_id)
    if draft.domain != host:
        await _lock_domain(session, client, host)
        await service.set_draft_domain(session, client.caller, list_id, host, rt.clock.now())


async def choose_name(
    session: WriteSession,
    rt: Runtime,
    space: Namespace,
    client: ListClient,
    list_id: int,
    slug: str | None,
) -> LinkList:
    """Set the name of a draft. Clients without an account may choose one only where it is allowed.

    A name that spells a code counts against the limit of misses.
    """
    if slug is not None:
        _require_name_allowed(rt, client, slug)
        if may_spell_code(space, slug) and not client.caller.is_admin:
            await rt.singleton(MissLimit).charge_network(client.network, client.caller.user_id)
    return await service.set_draft_slug(session, space, client.caller, list_id, slug)


async def publish_draft(
    session: WriteSession, rt: Runtime, space: Namespace, client: ListClient, list_id: int
) -> LinkList:
    """Publish a draft under its name, or a generated one if the caller may not choose."""
    draft = await service.lock_draft(session, client.caller, list_id)
    if client.is_anonymous and rt.settings.effective_anonymous_lists != "publish":
        raise AccountRequiredToPublish
    if client.is_anonymous and draft.slug is not None and draft.family_id == draft.id:
        if rt.settings.anonymous_names:
            _require_name_allowed(rt, client, draft.slug)
        else:
            await service.set_draft_slug(session, space, client.caller, list_id, None)
    return await service.publish_list(session, space, client.caller, list_id)


def _require_name_allowed(rt: Runtime, client: ListClient, slug: str) -> None:
    if client.is_anonymous and not rt.settings.anonymous_names:
        raise AccountRequiredForName
    if client.is_anonymous and is_sensitive_name(slug):
        raise SensitiveName(name=shown_text(slug))


async def _charge_list(session: WriteSession, rt: Runtime, client: ListClient) -> None:
    if client.is_anonymous:
        limit = rt.settings.anonymous_lists_per_hour
        await charge(session, f"lists:{client.network}", 1, per_hour=limit, now=rt.clock.now())


async def check_address(rt: Runtime, client: ListClient, url: str) -> CheckedAddress:
    """Return an address that may be added to a list. Raises the reason why not."""
    (found,) = await addresses.check_addresses(rt, client, [url])
    if isinstance(found, RefractError):
        raise found
    return found


async def check_changed_address(
    rt: Runtime, client: ListClient, list_id: int, changes: EntryPatch
) -> CheckedAddress | None:
    """Return the checked URL of a changed entry, or None if it stays.

    No URL is checked for a list that the caller may not edit.
    """
    if changes.url is None:
        return None
    async with rt.db.read() as session:
        await service.get_draft(session, client.caller, list_id)
    return await check_address(rt, client, changes.url)


async def save_entry(
    session: WriteSession,
    rt: Runtime,
    client: ListClient,
    list_id: int,
    entry_id: int,
    changes: EntryPatch,
    address: CheckedAddress | None,
) -> ListEntry:
    """Change an entry. A new URL counts like a new entry, and its page is fetched."""
    await service.lock_draft(session, client.caller, list_id)
    old = await queries.find_entry(session, list_id, entry_id)
    before = old.href, old.link_id
    entry = await service.edit_entry(
        session, client.caller, list_id, entry_id, changes, rt.clock.now(), address
    )
    if (entry.href, entry.link_id) != before:
        await _charge_entry(session, rt, client)
        await enqueue_entry_jobs(session, rt, [entry], client.caller.user_id)
    return entry


async def fetch_again(
    session: WriteSession, rt: Runtime, client: ListClient, list_id: int, entry_id: int
) -> ListEntry:
    """Fetch an entry's page again. It counts like a new entry."""
    entry = await service.refetch_entry(session, client.caller, list_id, entry_id, rt.clock.now())
    await _charge_entry(session, rt, client)
    await enqueue_entry_jobs(session, rt, [entry], client.caller.user_id)
    return entry


async def _charge_entry(session: WriteSession, rt: Runtime, client: ListClient) -> None:
    if client.is_anonymous:
        limit = rt.settings.anonymous_entries_per_hour
        await charge(session, f"entries:{client.network}", 1, per_hour=limit, now=rt.clock.now())


async def add_single_entry(
    session: WriteSession,
    rt: Runtime,
    space: Namespace,
    client: ListClient,
    list_id: int,
    address: CheckedAddress,
) -> EntryOut:
    """Add a URL, charge the rate limit and enqueue the fetch, in one transaction."""
    (entry,) = await service.add_entries(session, space, client.caller, list_id, [address])
    await _charge_entry(session, rt, client)
    await enqueue_entry_jobs(session, rt, [entry], client.caller.user_id)
    return (await _build_entry_outs(session, rt, [entry]))[entry.id]


async def add_entry_batch(
    session: WriteSession,
    rt: Runtime,
    space: Namespace,
    client: ListClient,
    list_id: int,
    found: Sequence[CheckedAddress | RefractError],
) -> EntriesResult:
    """Add the URLs that passed, each with its own result; those over the limit are refused."""
    await service.lock_draft(session, client.caller, list_id)
    good = [index for index, checked in enumerate(found) if isinstance(checked, CheckedAddress)]
    refused: dict[int, RefractError] = {
        index: checked for index, checked in enumerate(found) if isinstance(checked, RefractError)
    }
    if client.is_anonymous:
        limit = rt.settings.anonymous_entries_per_hour
        granted, _ = await charge_up_to(
            session, f"entries:{client.network}", len(good), per_hour=limit, now=rt.clock.now()
        )
        late = RateLimited(
            limit=limit or 0, per=Phrase("per hour"), retry_after=3600 // (limit or 1)
        )
        refused |= dict.fromkeys(good[granted:], late)
        good = good[:granted]
    accepted = [checked for index in good if isinstance(checked := found[index], CheckedAddress)]
    entries = await service.add_entries(session, space, client.caller, list_id, accepted)
    await enqueue_entry_jobs(session, rt, entries, client.caller.user_id)
    outs = await _build_entry_outs(session, rt, entries)
    by_index = {index: outs[entry.id] for index, entry in zip(good, entries, strict=True)}
    results = [
        (
            EntryResult(index=index, status=201, entry=by_index[index])
            if index in by_index
            else EntryResult(
                index=index, status=refused[index].status, error=build_entry_error(refused[index])
            )
        )
        for index in range(len(found))
    ]
    return EntriesResult(results=results, created=len(by_index), failed=len(refused))


async def build_entry_out(session: ReadSession, rt: Runtime, entry: ListEntry) -> EntryOut:
    return (await _build_entry_outs(session, rt, [entry]))[entry.id]


async def _build_entry_outs(
    session: ReadSession, rt: Runtime, entries: Sequence[ListEntry]
) -> dict[int, EntryOut]:
    """Return the output of entries of one list, by id."""
    if not entries:
        return {}
    alike = await queries.find_duplicates(session, entries)
    rows = await queries.list_entries(session, entries[0].list_id, [entry.id for entry in entries])
    blocked = await rt.singleton(blocked_domains.BlockedDomainCache).load_current(session)
    shown = resolve_entries(rows, blocked, rt.clock.now())
    return {
        line.entry.id: line.to_schema().model_copy(update={"duplicate": line.entry.id in alike})
        for line in shown
    }


async def build_list_out(
    session: ReadSession, rt: Runtime, client: ListClient, list_id: int
) -> ListOut:
    """Return a list of the caller with its entries."""
    seen = await queries.view_list(session, client.caller, list_id)
    shown = await resolve_list_entries(session, rt, list_id, seen.epoch)
    return await build_resolved_list(rt, seen, shown)


async def resolve_list_entries(
    session: ReadSession, rt: Runtime, list_id: int, epoch: int
) -> list[ResolvedEntry]:
    """Return all entries of a list, resolved in batches that do not block the event loop."""
    rows = await queries.list_entries(session, list_id)
    blocked = await rt.singleton(blocked_domains.BlockedDomainCache).load_at(session, epoch)
    now = rt.clock.now()
    known: set[str] = set()
    shown: list[ResolvedEntry] = []
    for start in range(0, len(rows), _BATCH_SIZE):
        shown += resolve_entries(rows[start : start + _BATCH_SIZE], blocked, now, known)
        await asyncio.sleep(0)
    return shown


async def build_resolved_list(
    rt: Runtime, seen: ListDetails, shown: Sequence[ResolvedEntry]
) -> ListOut:
    """Return a list with these entries, built in batches that do not block the event loop."""
    entries: list[EntryOut] = []
    for start in range(0, len(shown), _BATCH_SIZE):
        entries += [line.to_schema() for line in shown[start : start + _BATCH_SIZE]]
        await asyncio.sleep(0)
    return build_list(seen, entries, rt.settings.public_url)
