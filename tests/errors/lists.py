"""Provocations of lists, of signed-in makers and of draft owners without an account."""

import uuid

from sqlalchemy import select, update

from refract.core.secrets import hash_credential
from refract.identity.models import User
from refract.lists import service
from refract.lists.access import ListCaller as ListMaker
from refract.lists.draft_owners import CREATOR_COOKIE
from refract.lists.models import ListEntry
from refract.lists.schemas import MAX_SECTIONS, SectionCreate
from tests import make
from tests.access.objects import a_deleted_list, a_published_list
from tests.errors.links import BLOCKED, DANGEROUS, block, checked_site
from tests.errors.provoking import provokes, sends
from tests.errors.site import Asking, Headers, unique

_LIST = "/lists/{list_id}"
_ENTRY = f"{_LIST}/entries/{{entry_id}}"
_URL = "https://example.com/entry"

_ADDRESSED = (f"POST {_LIST}/entries", f"PATCH {_ENTRY}")
_SECTION = f"{_LIST}/sections/{{section_id}}"
sends("INVALID_URL", *_ADDRESSED, json={"url": "ftp://example.com/"})
sends("LINK_LOOP", *_ADDRESSED, json={"url": "http://go.test/nothing-here"})
sends("ORDER_MISMATCH", f"PUT {_LIST}/order", json={"entry_ids": ["1"]})
sends("INVALID_SLUG", f"POST {_LIST}/slug", f"POST {_LIST}/publish", json={"slug": "a b"})
sends("SLUG_RESERVED", f"POST {_LIST}/slug", f"POST {_LIST}/publish", json={"slug": "api"})


@provokes("BLOCKED_DESTINATION", *_ADDRESSED)
async def blocked_entry(asking: Asking) -> None:
    await block(asking.rt)
    await asking.ask(json={"url": BLOCKED})


@provokes("MALICIOUS_URL", *_ADDRESSED)
async def dangerous_entry(asking: Asking) -> None:
    await asking.ask(json={"url": DANGEROUS}, site=await checked_site(asking))


async def list_of(asking: Asking, *urls: str, maker: ListMaker | None = None) -> str:
    async with asking.rt.db.write() as session:
        made = await make.list_of(
            session, asking.rt, maker or ListMaker(asking.world.owner.id), *urls
        )
        return str(made.id)


@provokes("TOO_MANY_ENTRIES", f"POST {_LIST}/entries")
async def thousand_and_first_entry(asking: Asking) -> None:
    list_id = await list_of(asking, *(f"{_URL}/{number}" for number in range(1000)))
    await asking.ask(await asking.target(list_id=list_id))


@provokes("TOO_MANY_ENTRIES", f"POST {_ENTRY}/restore")
async def entry_of_a_list_that_is_full_again(asking: Asking) -> None:
    maker = ListMaker(asking.world.owner.id)
    list_id = await list_of(asking, *(f"{_URL}/{number}" for number in range(1000)))
    async with asking.rt.db.write() as session:
        first = await session.scalar(
            select(ListEntry.id).where(ListEntry.list_id == int(list_id)).limit(1)
        )
        assert first is not None
        now = asking.rt.clock.now()
        await service.remove_entry(session, maker, int(list_id), first, now)
        more = [make.address(f"{_URL}/more")]
        await service.add_entries(session, make.space(asking.rt), maker, int(list_id), more)
    await asking.ask(await asking.target(list_id=list_id, entry_id=str(first)))


@provokes("NOTHING_TO_UNDO", f"POST {_ENTRY}/restore")
async def entry_that_was_not_removed(asking: Asking) -> None:
    await asking.ask(await asking.target(list_id=await list_of(asking, _URL)))


_OF_A_DRAFT = (
    f"PATCH {_LIST}",
    f"POST {_LIST}/entries",
    f"PUT {_LIST}/order",
    f"POST {_LIST}/slug",
    f"POST {_LIST}/publish",
)


@provokes(
    "LIST_IMMUTABLE",
    *_OF_A_DRAFT,
    f"PATCH {_ENTRY}",
    f"DELETE {_ENTRY}",
    f"POST {_ENTRY}/restore",
    f"POST {_ENTRY}/fetch",
)
async def change_of_a_published_list(asking: Asking) -> None:
    await asking.ask(await asking.target(list_id=await a_published_list(asking.world)))


@provokes("LIST_IMMUTABLE", f"POST {_LIST}/sections", f"PATCH {_SECTION}", f"DELETE {_SECTION}")
async def section_of_a_published_list(asking: Asking) -> None:
    list_id = await a_published_list(asking.world)
    await asking.ask(await asking.target(list_id=list_id, section_id="1"), json={"title": "A"})


@provokes("TOO_MANY_SECTIONS", f"POST {_LIST}/sections")
async def fifty_first_section(asking: Asking) -> None:
    list_id = await list_of(asking, _URL)
    maker, space = ListMaker(asking.world.owner.id), make.space(asking.rt)
    async with asking.rt.db.write() as session:
        for number in range(MAX_SECTIONS):
            new = SectionCreate(title=f"Section {number}")
            await service.add_section(session, space, maker, int(list_id), new)
    await asking.ask(await asking.target(list_id=list_id))


@provokes("SLUG_TAKEN", f"POST {_LIST}/slug", f"POST {_LIST}/publish")
async def taken_slug(asking: Asking) -> None:
    name = unique()
    async with asking.rt.db.write() as session:
        await make.link(session, asking.rt, asking.world.owner, name=name)
    await asking.ask(json={"slug": name})


@provokes("SLUG_LOCKED", f"POST {_LIST}/slug", f"POST {_LIST}/publish")
async def other_name_for_a_new_edition(asking: Asking) -> None:
    published = int(await a_published_list(asking.world))
    async with asking.rt.db.write() as session:
        draft, _ = await service.create_edition(
            session, make.space(asking.rt), ListMaker(asking.world.owner.id), published
        )
    await asking.ask(await asking.target(list_id=str(draft.id)), json={"slug": unique()})


async def anonymous_draft(asking: Asking, *urls: str) -> tuple[str, Headers]:
    """Return a draft without an owner, and the headers of the browser that made it."""
    cookie = str(uuid.uuid4())
    list_id = await list_of(asking, *urls, maker=ListMaker(creator=hash_credential(cookie)))
    return list_id, {
        "Cookie": f"{CREATOR_COOKIE.get_name(asking.rt)}={cookie}",
        "Origin": asking.rt.settings.public_url,
    }


@provokes("ACCOUNT_REQUIRED_FOR_NAME", f"POST {_LIST}/slug", f"POST {_LIST}/publish")
async def name_without_an_account(asking: Asking) -> None:
    list_id, headers = await anonymous_draft(asking, _URL)
    site = asking.site.with_settings(anonymous_names=False)
    await asking.ask(
        await asking.target(list_id=list_id), headers=headers, json={"slug": unique()}, site=site
    )


@provokes("SENSITIVE_NAME", f"POST {_LIST}/slug", f"POST {_LIST}/publish")
async def sensitive_name_without_an_account(asking: Asking) -> None:
    list_id, headers = await anonymous_draft(asking, _URL)
    await asking.ask(
        await asking.target(list_id=list_id), headers=headers, json={"slug": "payroll"}
    )


@provokes("ACCOUNT_REQUIRED_TO_PUBLISH", f"POST {_LIST}/publish")
async def publishing_without_an_account(asking: Asking) -> None:
    list_id, headers = await anonymous_draft(asking, _URL)
    site = asking.site.with_settings(anonymous_lists="draft")
    await asking.ask(await asking.target(list_id=list_id), headers=headers, site=site)


@provokes("EMPTY_LIST", f"POST {_LIST}/publish")
async def empty_list_that_is_published(asking: Asking) -> None:
    await asking.ask(await asking.target(list_id=await list_of(asking)))


@provokes("LIST_NOT_PUBLISHED", f"POST {_LIST}/editions")
async def edition_of_a_draft(asking: Asking) -> None:
    await asking.ask(await asking.target(list_id=await list_of(asking, _URL)))


@provokes(
    "NOTHING_TO_UNDO",
    f"POST {_LIST}/undo",
    f"POST {_LIST}/release",
    "POST /admin/lists/{list_id}/undo",
)
async def undo_of_a_list_that_is_there(asking: Asking) -> None:
    await asking.ask(await asking.target(list_id=await list_of(asking, _URL)))


@provokes("REMOVED_BY_ADMIN", f"POST {_LIST}/undo", f"POST {_LIST}/release")
async def list_that_an_administrator_removed(asking: Asking) -> None:
    list_id = await a_published_list(asking.world)
    admin = ListMaker(asking.world.admin.id, is_admin=True)
    async with asking.rt.db.write() as session:
        await service.delete_list(
            session, asking.rt.ids, admin, int(list_id), asking.rt.clock.now()
        )
    await asking.ask(await asking.target(list_id=list_id))


@provokes("SLUG_TAKEN", f"POST {_LIST}/undo", "POST /admin/lists/{list_id}/undo")
async def deleted_list_whose_name_was_taken(asking: Asking) -> None:
    list_id = await a_deleted_list(asking.world)
    async with asking.rt.db.write() as session:
        released = await service.release_name(
            session, make.space(asking.rt), ListMaker(asking.world.owner.id), int(list_id)
        )
        await make.link(session, asking.rt, asking.world.owner, name=released.slug)
    await asking.ask(await asking.target(list_id=list_id))


@provokes("LIST_UNAVAILABLE", "GET /public/lists/{slug}")
async def list_of_a_suspended_owner(asking: Asking) -> None:
    path, owner = await asking.target(), asking.world.owner
    for held_at in (asking.rt.clock.now(), None):
        async with asking.rt.db.write() as session:
            await session.execute(update(User).where(User.id == owner.id).values(held_at=held_at))
        if held_at is not None:
            await asking.ask(path)


@provokes("RATE_LIMITED", "GET /public/lists/{slug}")
async def too_many_names_that_do_not_exist(asking: Asking) -> None:
    site = asking.site.with_settings(misses_per_minute=1)
    for _ in range(2):
        await asking.ask(await asking.target(slug="no-such-list"), site=site)
