"""Creating one or up to a thousand links, with the same few statements."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from refract.core.db.bulk import build_loaded_instance, insert_rows
from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.core.ids import get_creation_time
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.identity.models import User, UserRole
from refract.limits.errors import RateLimited
from refract.limits.service import HOUR_SECONDS, charge, charge_up_to
from refract.links import feed, history
from refract.links.enums import LinkState, Visibility
from refract.links.errors import ExpiryInPast, StartAfterExpiry, TeamRequired
from refract.links.limits.models import LinkLimit
from refract.links.models import COPIED_COLUMNS, NO_OWNER, Link, LinkOwner, LinkTag, LinkTeam
from refract.links.queries.cards import LinkCard, OwnerDetails
from refract.links.safety.service import enqueue_recheck
from refract.links.schemas import MAX_BULK_LINKS, LinkCreate
from refract.links.service.checks import SUBSTITUTES
from refract.links.service.new_links import NewLink, digest, find_existing, place_links, split_turns
from refract.links.service.tags import validate_tags
from refract.links.service.team_defaults import apply_team_defaults
from refract.links.service.team_rows import add_rows_of_links, build_owner_team, build_team_row
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.grammar import build_stem, is_kept, name_key
from refract.names.queries import find_shadowed_links
from refract.names.service import Namespace, namespace_of
from refract.tags import service as tags
from refract.tags.models import Tag
from refract.teams.accounts import find_team_of_account
from refract.teams.errors import TeamNotFound
from refract.teams.models import Team
from refract.teams.service import lock_own_teams

_PLAIN_FIELDS = (
    *("title", "notes", "redirect_status", "forward_query", "noindex", "expires_at", "starts_at"),
    "click_limit",
)
"""Fields that are stored as they are given."""
TRIALS_PER_CREATE = 10
"""Rows of dry runs per hour, for each link that may be created per hour."""


@dataclass(frozen=True, slots=True)
class CreatedLink:
    """A link, and whether it is new or was found."""

    card: LinkCard
    found: bool = False


@dataclass(frozen=True, slots=True)
class _Draft:
    row: Mapping[str, Any]
    card: LinkCard
    tags: Mapping[int, str]
    team: Team | None = None


Outcome = CreatedLink | RefractError


async def create_link(
    session: WriteSession, rt: Runtime, owner: User, new: NewLink, *, charged: bool = True
) -> CreatedLink:
    """Create a link: claim its names, queue a recheck if needed, and charge its owner.

    With `find_if_exists` an equivalent link is returned instead, free of charge. The unique key
    decides contested names; checking first would race. `charged=False` is for operators on the
    command line. Raises `RateLimited`, or what is wrong with the link.
    """
    (result,) = await _create(session, rt, owner, [new])
    if charged and (isinstance(result, RefractError) or not result.found):
        # The charge of a failure is rolled back with it; past the limit it hides the reason.
        await charge(
            session, _bucket(owner), 1, per_hour=creation_limit(rt, owner), now=rt.clock.now()
        )
    if isinstance(result, RefractError):
        raise result
    return result


async def create_links(
    session: WriteSession,
    rt: Runtime,
    owner: User,
    new_links: Sequence[NewLink],
    *,
    charged: bool = True,
) -> list[Outcome]:
    """Create many links, each with its own result. A failure does not affect the others.

    Every link is charged when it is tried. Those past the owner's limit are not tried; their
    result is `RateLimited`.
    """
    limit = creation_limit(rt, owner) if charged else None
    granted, _ = await charge_up_to(
        session, _bucket(owner), len(new_links), per_hour=limit, now=rt.clock.now()
    )
    results = await _create(session, rt, owner, new_links[:granted])
    late = RateLimited(
        limit=limit or 0, per=Phrase("per hour"), retry_after=HOUR_SECONDS // (limit or 1)
    )
    return [*results, *(late for _ in new_links[granted:])]


async def charge_trial(session: WriteSession, rt: Runtime, owner: User, rows: int) -> None:
    """Charge a dry run, which costs as much work as creating links but is rolled back."""
    limit = creation_limit(rt, owner)
    per_hour = None if limit is None else max(limit * TRIALS_PER_CREATE, MAX_BULK_LINKS)
    await charge(session, f"trials:{owner.id}", rows, per_hour=per_hour, now=rt.clock.now())


def creation_limit(rt: Runtime, owner: User) -> int | None:
    """Return how many links an owner may create per hour; None for administrators."""
    return None if owner.role == UserRole.ADMIN else rt.settings.creates_per_hour


def _bucket(owner: User) -> str:
    return f"creates:{owner.id}"


async def _create(
    session: WriteSession, rt: Runtime, owner: User, new_links: Sequence[NewLink]
) -> list[Outcome]:
    space, now = namespace_of(rt), rt.clock.now()
    results: dict[int, Outcome] = {}
    pending: dict[int, NewLink] = {}
    tag_names: dict[int, list[str]] = {}
    new_links = await _assign_team(session, owner, new_links)
    slugs = {new.given.team for new in new_links if new.given.team is not None}
    owning = await lock_own_teams(session, owner.id, slugs)
    new_links = [apply_team_defaults(new, owning.get(new.given.team or "")) for new in new_links]
    for index, new in enumerate(await place_links(session, owner, new_links)):
        try:
            if isinstance(new, RefractError):
                raise new
            tag_names[index] = validate_tags(new.given.tags)
            _check_team(new, owning)
            if new.kept is None:
                reject_past_expiry(new.given.expires_at, now)
            reject_late_start(new.given.starts_at, new.given.expires_at)
            pending[index] = new
        except RefractError as exc:
            results[index] = exc
    while pending:
        found = await find_existing(session, owner, pending, now)
        results |= {index: CreatedLink(card, found=True) for index, card in found.items()}
        together, later = split_turns(
            {index: new for index, new in pending.items() if index not in found}
        )
        turn = {index: (pending[index], tag_names[index]) for index in together}
        results |= await _create_batch(session, space, owner, turn, owning)
        pending = {index: pending[index] for index in later}
    return [results[index] for index in range(len(new_links))]


async def _assign_team(
    session: WriteSession, owner: User, new_links: Sequence[NewLink]
) -> Sequence[NewLink]:
    """Let the team own what one of its keys creates."""
    team = await find_team_of_account(session, owner)
    if team is None:
        return new_links
    return [
        replace(new, given=new.given.model_copy(update={"team": new.given.team or team.slug}))
        for new in new_links
    ]


def _check_team(new: NewLink, owning: Mapping[str, Team]) -> None:
    """Raise an error if the team that shall own a link is none of the creator's, or missing."""
    if new.given.team is not None and new.given.team not in owning:
        raise TeamNotFound
    if new.visibility == Visibility.TEAM and new.given.team is None:
        raise TeamRequired


def reject_past_expiry(expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise ExpiryInPast


def reject_late_start(starts_at: datetime | None, expires_at: datetime | None) -> None:
    if starts_at is not None and expires_at is not None and starts_at >= expires_at:
        raise StartAfterExpiry


async def _create_batch(
    session: WriteSession,
    space: Namespace,
    owner: User,
    new_links: Mapping[int, tuple[NewLink, list[str]]],
    owning: Mapping[str, Team],
) -> dict[int, Outcome]:
    now = space.clock.now()
    links = {index: new for index, (new, _) in new_links.items()}
    numbers = await _assign_ids(session, space, links)
    hosts = {numbers[index]: new.domain or "" for index, new in links.items()}
    requested = {numbers[index]: new.given.names for index, new in links.items()}
    codes = {numbers[index]: new.kept.codes for index, new in links.items() if new.kept}
    refused = await names.claim_names(
        *(session, space, NameTarget.LINK, requested, hosts), codes=codes, claimant=owner.id
    )
    granted = {index: pair for index, pair in new_links.items() if numbers[index] not in refused}
    drawn = await names.assign_codes(session, space, _select_codes(space, numbers, granted), hosts)
    by_name = await tags.ensure_shared_tags(
        session,
        space.ids,
        dict.fromkeys(name for _, tag_names in granted.values() for name in tag_names),
        now,
    )
    drafts = {
        index: _build_draft(
            numbers[index],
            drawn.get(numbers[index]),
            new,
            owner,
            [by_name[name] for name in tag_names],
            owning[new.given.team] if new.given.team is not None else None,
            now,
        )
        for index, (new, tag_names) in granted.items()
    }
    await _insert_rows(session, owner.id, list(drafts.values()), now)
    await enqueue_recheck(
        session,
        space,
        [numbers[index] for index, (new, _) in granted.items() if new.is_unchecked],
    )
    made: dict[int, Outcome] = {
        index: refused[number] for index, number in numbers.items() if number in refused
    }
    return made | {index: CreatedLink(draft.card) for index, draft in drafts.items()}


async def _assign_ids(
    session: WriteSession, space: Namespace, new_links: Mapping[int, NewLink]
) -> dict[int, int]:
    kept = {
        index: new.kept.number
        for index, new in new_links.items()
        if new.kept is not None and new.kept.number is not None
    }
    hosts = {new.domain or "" for new in new_links.values()}
    past = {
        index: new.kept.created_at
        for index, new in new_links.items()
        if index not in kept and new.kept is not None and new.kept.created_at is not None
    }
    if past:
        kept |= await names.draw_past_ids(session, space, past, hosts)
    others = [index for index in new_links if index not in kept]
    numbers = await names.allocate_ids(session, space, len(others), hosts)
    return kept | dict(zip(others, numbers, strict=True))


def _select_codes(
    space: Namespace, numbers: Mapping[int, int], new_links: Mapping[int, tuple[NewLink, list[str]]]
) -> dict[int, str | None]:
    """Return the links that get a random code, with the one to keep, if any.

    A link with a kept id keeps the code derived from it.
    """
    codes: dict[int, str | None] = {}
    for index, (new, _) in new_links.items():
        kept = new.kept if new.kept is not None and new.kept.number is not None else None
        if kept.code is not None if kept is not None else space.random_codes:
            codes[numbers[index]] = kept.code if kept is not None else None
    return codes


def _build_draft(
    number: int,
    code: str | None,
    new: NewLink,
    owner: User,
    tags_of_link: Sequence[Tag],
    team: Team | None,
    now: datetime,
) -> _Draft:
    given, vetted = new.given, new.vetted
    made = (new.kept and new.kept.created_at) or get_creation_time(number)
    state = LinkState.DISABLED if new.kept is not None and new.kept.disabled else LinkState.ACTIVE
    visibility, audience = Visibility(new.visibility).columns
    names = _list_distinct_names(new.names)
    row = {
        "id": number,
        "destination": vetted.as_typed,
        "href": vetted.href,
        "href_digest": digest(vetted.href),
        "destination_host": vetted.host,
        "has_placeholders": vetted.template is not None,
        **{name: getattr(given, name) for name in _PLAIN_FIELDS},
        "visibility": visibility,
        "audience": audience,
        "random_code": code,
        "status": state.value,
        "disabled_by_admin": False,
        "flagged": vetted.flagged,
        "flag_reason": vetted.flag_reason,
        "checked_at": None if vetted.unchecked else max(made, now),
        **dict.fromkeys((*SUBSTITUTES, "deleted_at")),
        **new.extras.columns,
        **_build_appearance(given),
        **dict.fromkeys(("created_at", "updated_at"), made),
        "version": 1,
        "domain": new.domain,
    }
    link = build_loaded_instance(Link, {**row, "on_hold": False})
    row["search_text"] = link.__dict__["search_text"] = history.build_search_text(link, names)
    tagged = {tag.id: tag.name for tag in sorted(tags_of_link, key=lambda tag: tag.key)}
    teams = [build_owner_team(team, owner.id, made)] if team is not None else []
    owners = [] if teams else [_build_owner(owner, made)]
    card = LinkCard(link, names, [*tagged.values()], owners, tag_ids=[*tagged], teams=teams)
    card = replace(card, taken=new.taken_clicks)
    return _Draft(row, card, tagged, team)


def _build_appearance(given: LinkCreate) -> dict[str, str | None]:
    """Return the columns of the preview card and of the style of the QR code."""
    return {
        "preview_card": given.preview_card.to_column() if given.preview_card else None,
        "qr_style": given.qr_style.to_column() if given.qr_style else None,
    }


def _list_distinct_names(names: Iterable[str]) -> list[str]:
    """Return the first spelling of each name."""
    by_key: dict[str, str] = {}
    for name in names:
        by_key.setdefault(name_key(name), name)
    return list(by_key.values())


async def _insert_rows(
    session: WriteSession, owner_id: int, drafts: Sequence[_Draft], now: datetime
) -> None:
    """Insert the rows of new links, table by table."""
    own_links = [draft.card.link for draft in drafts if draft.team is None]
    team_rows = [
        build_team_row(draft.card.link, draft.team, owner_id) for draft in drafts if draft.team
    ]
    tagged = [
        {
            "link_id": draft.card.link.id,
            "tag_id": tag_id,
            "owner_id": owner_id if draft.team is None else NO_OWNER,
        }
        for draft in drafts
        for tag_id in draft.tags
    ]
    await insert_rows(session, Link, [draft.row for draft in drafts])
    await insert_rows(session, LinkOwner, [_build_owner_row(link, owner_id) for link in own_links])
    if team_rows:
        await insert_rows(session, LinkTeam, team_rows)
        await add_rows_of_links(session, [row["link_id"] for row in team_rows], now)
    await insert_rows(session, LinkTag, tagged)
    limits = [{"link_id": draft.card.link.id, "taken": draft.card.taken} for draft in drafts]
    await insert_rows(session, LinkLimit, [row for row in limits if row["taken"]])
    await tags.adjust_usage(session, Counter(row["tag_id"] for row in tagged), now)
    changes = [feed.build_change(draft.card.link, draft.card.names) for draft in drafts]
    kept = [text for change in changes for text in change.names if is_kept(text)]
    shadowed = await find_shadowed_links(session, set(map(build_stem, kept)))
    await feed.publish_changes(session, [*changes, *map(feed.build_reload, shadowed)])


def _build_owner_row(link: Link, owner_id: int) -> dict[str, Any]:
    return {
        "link_id": link.id,
        "user_id": owner_id,
        "primary_link_id": link.id,
        "added_by": owner_id,
        "created_at": link.created_at,
        **{name: getattr(link, name) for name in COPIED_COLUMNS},
    }


def _build_owner(owner: User, at: datetime) -> OwnerDetails:
    return OwnerDetails(owner.id, owner.public_name, owner.email, primary=True, added_at=at)
