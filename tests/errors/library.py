"""Provocations of the library: items, their review, tags, rules, imports and exports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from refract.identity.concurrency_limits import UserConcurrencyLimits
from refract.imports.models import ImportRun, ImportStatus, ImportSubject
from refract.imports.service import create_import, mark_rolling_back
from refract.library import service
from refract.library.enrichment.types import EnrichmentProposal, SuggestedTag
from refract.library.imports.rollback import roll_back_batch
from refract.library.schemas import ItemCreate, ItemPatch
from refract.library.service.tag_changes import delete_tag
from refract.tags import personal_tags
from tests.access.objects import a_shared_tag
from tests.errors.provoking import provokes, sends
from tests.errors.site import Asking, many, unique

_ITEM = "/items/{item_id}"
_TAGGING = ("POST /items", f"PATCH {_ITEM}", f"POST {_ITEM}/confirm")
_CAPTURES = ("POST /items", "POST /items/bulk")


def captured(asking: Asking, **given: object) -> dict[str, object]:
    """Return the body that succeeds, with more in it."""
    return {**(asking.row.body or {}), **given}


@provokes("UNKNOWN_TAG", *_TAGGING, "POST /items/bulk")
async def tag_of_nobody(asking: Asking) -> None:
    await asking.ask(json=captured(asking, tag_ids=["1"]))


@provokes("INVALID_TAG", *_TAGGING, "POST /items/bulk")
async def name_that_no_tag_may_have(asking: Asking) -> None:
    await asking.ask(json=captured(asking, new_tags=["<"]))


@provokes("TOO_MANY_ITEM_TAGS", *_TAGGING, "POST /items/bulk")
async def fifty_first_tag(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        tags = await personal_tags.ensure_tags(
            session, asking.rt.ids, asking.world.owner.id, ["one more"], asking.rt.clock.now()
        )
    names = [f"tag {number}" for number in range(50)]
    await asking.ask(json=captured(asking, new_tags=names, tag_ids=[str(tags["one more"].id)]))


sends("EMPTY_TEXT", "POST /items/bulk", json={"paste": " "})
sends(
    "UNKNOWN_SUGGESTION",
    f"POST {_ITEM}/confirm",
    f"POST {_ITEM}/suggestions",
    json={"accept": ["1"]},
)


@provokes("CAPTURE_LIMIT_REACHED", *_CAPTURES)
async def capture_beyond_the_hour(asking: Asking) -> None:
    site = asking.site.with_settings(captures_per_hour=1)
    await asking.ask(site=site)
    await asking.ask(site=site)


@provokes("ITEM_LIMIT_REACHED", *_CAPTURES)
async def capture_beyond_the_number(asking: Asking) -> None:
    await asking.target()
    await capture(asking)
    await asking.ask(site=asking.site.with_settings(items_per_person=1))


async def capture(asking: Asking, text: str = "A thought.", **given: object) -> int:
    async with asking.rt.db.write() as session:
        new = ItemCreate.model_validate({"text": text, **given})
        return (await service.capture_item(session, asking.rt, asking.world.owner, new)).item.id


@provokes("STORAGE_LIMIT_REACHED", *_CAPTURES)
async def capture_beyond_the_storage(asking: Asking) -> None:
    await asking.ask(site=asking.site.with_settings(storage_per_person=1))


@provokes("STORAGE_LIMIT_REACHED", f"PATCH {_ITEM}")
async def text_beyond_the_storage(asking: Asking) -> None:
    await asking.ask(
        json={"text": "A longer thought than the one before."},
        site=asking.site.with_settings(storage_per_person=1),
    )


@asynccontextmanager
async def holding(asking: Asking, item_id: int) -> AsyncIterator[service.LockedItem]:
    async with asking.rt.db.write() as session:
        yield await service.lock_item(session, asking.rt, asking.world.owner.id, item_id)


@provokes("STORAGE_LIMIT_REACHED", f"POST {_ITEM}/undo")
async def longer_text_that_comes_back(asking: Asking) -> None:
    item_id = await capture(asking, "A longer thought than the one after.")
    async with holding(asking, item_id) as held:
        await service.edit_item(held, ItemPatch(text="Short."))
    await asking.ask(
        await asking.target(item_id=str(item_id)),
        site=asking.site.with_settings(storage_per_person=1),
    )


_STEPS = ("confirm", "suggestions", "discard", "retry")


@provokes(
    "INVALID_STATE_TRANSITION",
    f"PATCH {_ITEM}",
    f"DELETE {_ITEM}",
    *(f"POST {_ITEM}/{step}" for step in _STEPS),
)
async def change_of_a_discarded_item(asking: Asking) -> None:
    item_id = await capture(asking)
    async with holding(asking, item_id) as held:
        await service.discard_item(held)
    await asking.ask(await asking.target(item_id=str(item_id)))


@provokes("INVALID_STATE_TRANSITION", f"POST {_ITEM}/restore", f"POST {_ITEM}/erase")
async def restoring_of_an_item_that_is_there(asking: Asking) -> None:
    await asking.ask(await asking.target(item_id=str(await capture(asking))))


@provokes("CONFLICTING_DECISION", f"POST {_ITEM}/confirm", f"POST {_ITEM}/suggestions")
async def suggestion_that_is_taken_and_refused(asking: Asking) -> None:
    item_id = await capture(asking)
    async with asking.rt.db.write() as session:
        item = (await service.lock_item(session, asking.rt, asking.world.owner.id, item_id)).item
        await service.apply_proposal(
            session,
            asking.rt,
            item,
            EnrichmentProposal("A thought", None, [SuggestedTag("thought", 0.9, "in the text")]),
            final=True,
        )
    async with holding(asking, item_id) as held:
        [suggestion] = held.suggestions
    both = [str(suggestion.id)]
    await asking.ask(
        await asking.target(item_id=str(item_id)), json={"accept": both, "reject": both}
    )


@provokes("NOTHING_TO_UNDO", f"POST {_ITEM}/undo")
async def item_that_was_undone_before(asking: Asking) -> None:
    path = await asking.target(item_id=str(await capture(asking)))
    await asking.ask(path)
    await asking.ask(path)


sends("INVALID_TAG", "POST /tags", "PATCH /tags/{tag_id}", json={"name": "<"})
sends("ADMIN_REQUIRED", "POST /tags", json={"name": "Shared", "scope": "shared"})
sends("TAG_NOT_FOUND", "POST /tags/merge")
sends("ALIAS_NOT_FOUND", "DELETE /tags/{tag_id}/aliases", query={"name": "no such alias"})
sends(
    "INVALID_RULE", "PUT /me/tag-rules", json={"items": [{"pattern": "nothing", "tags": ["code"]}]}
)
sends(
    "INVALID_TAG", "PUT /me/tag-rules", json={"items": [{"pattern": "github.com", "tags": ["<"]}]}
)


@provokes("ADMIN_REQUIRED", "PATCH /tags/{tag_id}", "DELETE /tags/{tag_id}")
async def shared_tag_of_my_link(asking: Asking) -> None:
    await asking.ask(await asking.target(tag_id=await a_shared_tag(asking.world)))


async def own_tag(asking: Asking, name: str) -> int:
    async with asking.rt.db.write() as session:
        return (
            await personal_tags.ensure_tags(
                session, asking.rt.ids, asking.world.owner.id, [name], asking.rt.clock.now()
            )
        )[name].id


@provokes("NOTHING_TO_MERGE", "POST /tags/merge")
async def tag_that_is_merged_into_itself(asking: Asking) -> None:
    tag_id = str(await own_tag(asking, "alone"))
    await asking.ask(json={"target": tag_id, "sources": [tag_id]})


@provokes("ADMIN_REQUIRED", "POST /tags/merge")
async def merge_of_a_shared_tag(asking: Asking) -> None:
    tag_id = await a_shared_tag(asking.world)
    await asking.ask(json={"target": tag_id, "sources": [tag_id]})


@provokes("TAG_EXISTS", "PATCH /tags/{tag_id}")
async def name_of_another_tag(asking: Asking) -> None:
    await own_tag(asking, name := unique("tag"))
    await asking.ask(json={"name": name})


@provokes("TAG_NAME_RESERVED", "PATCH /tags/{tag_id}")
async def name_of_a_deleted_tag(asking: Asking) -> None:
    tag_id = await own_tag(asking, name := unique("tag"))
    async with asking.rt.db.write() as session:
        await delete_tag(
            session, asking.rt.ids, asking.world.owner.id, tag_id, asking.rt.clock.now()
        )
    await asking.ask(json={"name": name})


@provokes("NO_TAG_CHANGE", "POST /tags/{tag_id}/undo")
async def tag_without_a_change(asking: Asking) -> None:
    await asking.ask(await asking.target(tag_id=str(await own_tag(asking, unique("tag")))))


sends("UNREADABLE_FILE", "POST /library/imports", content=b"nothing that is a bookmark")
sends(
    "INVALID_SOURCE",
    "POST /links/imports/remote",
    json={"system": "kutt", "url": "https://kutt.example.com/?x=1", "key": "k"},
)
sends("UNREADABLE_FILE", "POST /links/imports", content=b"nothing that is a link")
sends("UNKNOWN_KIND", "GET /search", query={"kinds": "people"})


@provokes("IMPORT_CLOSED", "POST /library/imports/{import_id}/rollback")
async def import_that_was_rolled_back(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        one = await create_import(session, asking.rt, asking.world.owner.id, "refract", None)
        await mark_rolling_back(session, one, asking.rt.clock.now())
    while await roll_back_batch(asking.rt, one.id):
        pass
    await asking.ask(await asking.target(import_id=str(one.id)))


@provokes("IMPORT_CLOSED", "POST /links/imports/{import_id}/rollback")
async def link_import_that_was_rolled_back(asking: Asking) -> None:
    number = await _link_import(asking, ImportStatus.ROLLED_BACK)
    await asking.ask(await asking.target(import_id=number))


@provokes("REMOTE_IMPORT_RUNNING", "POST /links/imports/remote")
async def second_import_from_elsewhere(asking: Asking) -> None:
    number = await _link_import(asking, ImportStatus.RUNNING)
    async with asking.rt.db.write() as session:
        one = await session.get_one(ImportRun, int(number))
        one.options = {"source": {"url": "https://kutt.example.com", "key": "", "page": 0}}
    body = {"system": "kutt", "url": "https://kutt.example.com", "key": "k"}
    await asking.ask(json=body)


@provokes("IMPORT_NOT_TRIED", "POST /links/imports/{import_id}/run")
async def link_import_without_a_dry_run(asking: Asking) -> None:
    number = await _link_import(asking, ImportStatus.DONE)
    await asking.ask(await asking.target(import_id=number))


async def _link_import(asking: Asking, status: ImportStatus) -> str:
    async with asking.rt.db.write() as session:
        owner = asking.world.owner.id
        one = await create_import(session, asking.rt, owner, "csv", None, ImportSubject.LINKS)
        one.status = status
        return str(one.id)


@provokes(
    "EXPORT_LIMIT_REACHED",
    "GET /library/export",
    "GET /me/export",
    "GET /links/{link_id}/stats/export",
)
async def exports_beside_each_other(asking: Asking) -> None:
    shares = asking.rt.singleton(UserConcurrencyLimits)
    limit = asking.rt.settings.exports_per_person or 0
    with many(shares.count_export(asking.world.owner.id) for _ in range(limit)):
        await asking.ask()
