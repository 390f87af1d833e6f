"""Review: every decision in every status, and its effects."""

import pytest
from httpx import AsyncClient, Response
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.jobs.claims import claim_jobs
from refract.jobs.worker import JobWorker
from refract.library import service
from refract.library.enrichment.types import EnrichmentProposal, SuggestedTag
from refract.library.models import Item, ItemStatus
from refract.library.payloads import EnrichItem
from refract.library.personal_data import erase_user_data, export_user_data
from refract.library.queries.items import lock_item_row
from refract.library.schemas import ItemConfirmation, ItemOut
from refract.library.service.lock import ALLOWED_ACTIONS, STATUS_LABELS
from refract.tags.models import Tag
from tests.client import on_sqlite
from tests.library.conftest import Look, Save
from tests.library.http import Site, page

TAGS = [
    SuggestedTag("Engines", 0.9, "in the title"),
    SuggestedTag("Coal", 0.6, "3 times in the text"),
    SuggestedTag("Mills", 0.4, "often in the text"),
]


async def propose(rt: Runtime, item: ItemOut, tags: list[SuggestedTag] | None = None) -> None:
    async with rt.db.write() as session:
        held = await lock_item_row(session, item.id)
        assert held is not None
        await service.apply_proposal(
            session,
            rt,
            held,
            EnrichmentProposal("A title", "A summary.", TAGS if tags is None else tags),
            final=True,
        )


async def bring_to(rt: Runtime, ada: User, item: ItemOut, status: ItemStatus) -> None:
    async with rt.db.write() as session:
        held = await service.lock_item(session, rt, ada.id, item.id)
        if status == ItemStatus.FAILED:
            await service.mark_failed(session, rt, held.item, "The page couldn't be reached.")
        elif status in (ItemStatus.READY_TO_CONFIRM, ItemStatus.ARCHIVED):
            await service.apply_proposal(
                session, rt, held.item, EnrichmentProposal("A title", None, []), final=True
            )
        if status == ItemStatus.ARCHIVED:
            await service.confirm_item(
                await service.lock_item(session, rt, ada.id, item.id), ItemConfirmation()
            )
        if status == ItemStatus.DISCARDED:
            await service.discard_item(held)


async def ask(client: AsyncClient, item: ItemOut, step: str) -> Response:
    if step == "edit":
        return await client.patch(f"/api/v1/items/{item.id}", json={"title": "Mine"})
    return await client.post(f"/api/v1/items/{item.id}/{step}")


@on_sqlite
@pytest.mark.parametrize("status", ItemStatus)
@pytest.mark.parametrize("step", ["confirm", "discard", "retry", "edit"])
async def test_what_a_state_does_not_allow_is_refused_by_name(
    rt: Runtime,
    ada: User,
    as_ada: AsyncClient,
    save: Save,
    look: Look,
    status: ItemStatus,
    step: str,
) -> None:
    item = await save("A thought.")
    await bring_to(rt, ada, item, status)
    before = await look(item)

    answer = await ask(as_ada, item, step)

    if step in ALLOWED_ACTIONS[status].split(", "):
        assert answer.status_code == 200
    else:
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (409, "INVALID_STATE_TRANSITION")
        assert (problem["state"], problem["allowed"]) == (
            status,
            ALLOWED_ACTIONS[status].split(", "),
        )
        assert f"The item is {STATUS_LABELS[status]} and can't be" in problem["detail"]
        assert await look(item) == before


async def test_confirm_keeps_what_the_person_keeps(
    rt: Runtime, as_ada: AsyncClient, save: Save
) -> None:
    item = await save("https://example.com/a", new_tags=["Old"])
    await propose(rt, item)
    read = (await as_ada.get(f"/api/v1/items/{item.id}")).json()
    ids = {one["name"]: one["id"] for one in read["suggestions"]}
    assert [one["confidence"] for one in read["suggestions"]] == [0.9, 0.6, 0.4]

    answer = await as_ada.post(
        f"/api/v1/items/{item.id}/confirm",
        json={
            "title": "Mine",
            "accept": [ids["Engines"]],
            "reject": [ids["Coal"]],
            "new_tags": ["History"],
        },
    )

    kept = answer.json()
    assert (answer.status_code, kept["status"], kept["title"], kept["summary"]) == (
        200,
        "ARCHIVED",
        "Mine",
        "A summary.",
    )
    assert sorted(tag["name"] for tag in kept["tags"]) == ["Engines", "History", "Old"]
    assert {one["name"]: (one["status"], one["existing"]) for one in kept["suggestions"]} == {
        "Engines": ("ACCEPTED", True),
        "Coal": ("REJECTED", False),
        "Mills": ("PENDING", False),
    }
    async with rt.db.read() as session:
        usage = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
    assert usage == {"Engines": 1, "History": 1, "Old": 1}


async def test_tag_ids_are_the_full_set_and_undo_brings_all_back(
    rt: Runtime, as_ada: AsyncClient, save: Save
) -> None:
    item = await save("A thought.", new_tags=["Old", "Older"])
    await propose(rt, item)
    before = (await as_ada.get(f"/api/v1/items/{item.id}")).json()
    accept = [one["id"] for one in before["suggestions"]][:1]
    kept = (
        await as_ada.post(
            f"/api/v1/items/{item.id}/confirm",
            json={"tag_ids": [], "accept": accept, "summary": "Mine."},
        )
    ).json()
    assert [tag["name"] for tag in kept["tags"]] == ["Engines"]

    undone = (await as_ada.post(f"/api/v1/items/{item.id}/undo")).json()

    assert undone["status"] == "READY_TO_CONFIRM"
    moving = ("version", "updated_at", "suggestions")
    assert {name: value for name, value in undone.items() if name not in moving} == {
        name: value for name, value in before.items() if name not in moving
    }
    assert {one["status"] for one in undone["suggestions"]} == {"PENDING"}
    async with rt.db.read() as session:
        assert {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))} == {
            "Old": 1,
            "Older": 1,
        }


async def test_tag_ids_say_which_tags_an_item_bears(as_ada: AsyncClient, save: Save) -> None:
    item = await save("A thought.", new_tags=["One", "Two"])
    ids = {tag.name: str(tag.id) for tag in item.tags}

    changed = await as_ada.patch(
        f"/api/v1/items/{item.id}", json={"tag_ids": [ids["Two"]], "new_tags": ["Three"]}
    )
    assert [tag["name"] for tag in changed.json()["tags"]] == ["Three", "Two"]
    unknown = await as_ada.patch(f"/api/v1/items/{item.id}", json={"tag_ids": ["12"]})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "UNKNOWN_TAG")


async def test_undo_brings_merged_tags_back_as_their_target_and_deleted_ones_not_at_all(
    rt: Runtime, as_ada: AsyncClient, save: Save, look: Look
) -> None:
    item = await save("A thought.", new_tags=["k8s", "Gone", "Stays"])
    ids = {tag.name: str(tag.id) for tag in (await look(item)).tags}
    await as_ada.post(f"/api/v1/items/{item.id}/discard")
    target = (await as_ada.post("/api/v1/tags", json={"name": "Kubernetes"})).json()["id"]
    await as_ada.post("/api/v1/tags/merge", json={"target": target, "sources": [ids["k8s"]]})
    await as_ada.delete(f"/api/v1/tags/{ids['Gone']}")

    undone = (await as_ada.post(f"/api/v1/items/{item.id}/undo")).json()

    assert [tag["name"] for tag in undone["tags"]] == ["Kubernetes", "Stays"]
    async with rt.db.read() as session:
        usage = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
    assert usage == {"k8s": 0, "Gone": 0, "Stays": 1, "Kubernetes": 1}


@on_sqlite
async def test_bad_decisions_change_nothing(
    rt: Runtime, as_ada: AsyncClient, save: Save, look: Look
) -> None:
    item = await save("A thought.")
    await propose(rt, item)
    before = await look(item)
    one = str(before.suggestions[0].id)

    for body, code in (
        ({"accept": ["1"]}, "UNKNOWN_SUGGESTION"),
        ({"accept": [one], "reject": [one]}, "CONFLICTING_DECISION"),
        ({"new_tags": ["#"]}, "INVALID_TAG"),
        ({"title": "x" * 256}, "VALIDATION_FAILED"),
    ):
        answer = await as_ada.post(f"/api/v1/items/{item.id}/confirm", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, code), body
    stale = await as_ada.post(f"/api/v1/items/{item.id}/confirm", headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    assert await look(item) == before


@on_sqlite
async def test_suggestions_one_by_one(
    rt: Runtime, as_ada: AsyncClient, save: Save, look: Look
) -> None:
    item = await save("A thought.")
    await propose(rt, item)
    first, second, _ = (await look(item)).suggestions

    await as_ada.post(
        f"/api/v1/items/{item.id}/suggestions",
        json={"accept": [str(first.id)], "reject": [str(second.id)]},
    )

    seen = await look(item)
    assert (seen.status, [tag.name for tag in seen.tags]) == ("READY_TO_CONFIRM", [first.name])
    again = await as_ada.post(
        f"/api/v1/items/{item.id}/suggestions", json={"accept": [str(second.id)]}
    )
    assert (again.status_code, again.json()["state"]) == (409, "REJECTED")


@on_sqlite
async def test_a_rejected_name_is_never_proposed_again(
    rt: Runtime, work: JobWorker, as_ada: AsyncClient, save: Save, look: Look, site: Site
) -> None:
    head = '<meta name="keywords" content="Coal, Steam">'
    text = "Steam engines burn coal. " * 3
    site.pages.update(
        {
            "/a": page("Coal and steam", text, head=head),
            "/b": page("Coal and steam again", text, head=head),
        }
    )
    first = await save(site.url("/a"))
    await work.run_due_jobs()
    coal = next(one for one in (await look(first)).suggestions if one.name == "Coal")
    await as_ada.post(f"/api/v1/items/{first.id}/confirm", json={"reject": [str(coal.id)]})

    second = await save(site.url("/b"))
    await work.run_due_jobs()

    names = {one.name.casefold() for one in (await look(second)).suggestions}
    assert "steam" in names
    assert "coal" not in names


async def test_what_a_person_wrote_the_assistant_leaves_alone(
    rt: Runtime, as_ada: AsyncClient, save: Save, look: Look
) -> None:
    item = await save("A thought.")
    await as_ada.patch(f"/api/v1/items/{item.id}", json={"title": "Mine"})

    await propose(rt, item)

    seen = await look(item)
    assert (seen.title, seen.summary, seen.status) == ("Mine", "A summary.", "READY_TO_CONFIRM")


async def test_a_discarded_item_is_out_of_its_jobs_reach(
    rt: Runtime, work: JobWorker, as_ada: AsyncClient, save: Save, look: Look
) -> None:
    item = await save("A thought.")
    async with rt.db.write() as session:
        (running,) = await claim_jobs(session, rt, "worker", {EnrichItem.kind: 3}, 5)
    job = EnrichItem(item_id=item.id)
    job.bind_claim(running)
    await as_ada.post(f"/api/v1/items/{item.id}/discard")

    async with rt.db.write() as session:
        assert await service.lock_item_for_job(session, job) is None
    undone = (await as_ada.post(f"/api/v1/items/{item.id}/undo")).json()
    assert undone["status"] == "ENRICHING"
    async with rt.db.write() as session:
        assert await service.lock_item_for_job(session, job) is None, (
            "undo gave the item to another job"
        )
    await work.run_due_jobs()
    assert (await look(item)).status == "READY_TO_CONFIRM"


@on_sqlite
async def test_auto_confirm_is_off_until_asked_for(
    rt: Runtime, work: JobWorker, as_ada: AsyncClient, save: Save, look: Look
) -> None:
    await as_ada.put(
        "/api/v1/me/tag-rules", json={"items": [{"pattern": '"coal"', "tags": ["Fuel"]}]}
    )
    first = await save("We need coal for the engine.")
    await work.run_due_jobs()
    assert (await look(first)).status == "READY_TO_CONFIRM"
    me = await as_ada.patch("/api/v1/me", json={"preferences": {"auto_confirm": 0.9}})
    assert me.json()["preferences"]["auto_confirm"] == 0.9

    sure, unsure = await save("More coal for the engine."), await save("Something else entirely.")
    await work.run_due_jobs()

    assert ((await look(sure)).status, [tag.name for tag in (await look(sure)).tags]) == (
        "ARCHIVED",
        ["Fuel"],
    )
    assert (await look(unsure)).status == "READY_TO_CONFIRM"
    undone = (await as_ada.post(f"/api/v1/items/{sure.id}/undo")).json()
    assert (undone["status"], undone["tags"]) == ("READY_TO_CONFIRM", [])
    off = await as_ada.patch("/api/v1/me", json={"preferences": {"auto_confirm": None}})
    assert off.json()["preferences"]["auto_confirm"] is None


@on_sqlite
async def test_suggestions_can_be_turned_off(
    rt: Runtime, work: JobWorker, as_ada: AsyncClient, site: Site, save: Save, look: Look, ada: User
) -> None:
    await as_ada.patch("/api/v1/me", json={"preferences": {"suggestions": False}})
    site.pages["/a"] = page(
        "Coal and steam",
        "Steam engines burn coal. " * 9,
        head='<meta name="keywords" content="Coal">',
    )
    async with rt.db.read() as session:
        ada = await session.get_one(User, ada.id)

    item = await save(site.url("/a"), by=ada)
    await work.run_due_jobs()

    seen = await look(item)
    assert (seen.status, seen.title, seen.suggestions) == ("READY_TO_CONFIRM", "Coal and steam", [])


async def test_erasing_a_person_leaves_nothing_of_theirs(
    rt: Runtime, save: Save, ada: User, bob: User
) -> None:
    item = await save("A thought.", new_tags=["Mine"])
    await propose(rt, item)
    kept = await save("Bob's.", by=bob, new_tags=["Mine"])

    async with rt.db.write() as session:
        await erase_user_data(session, ada.id)

    async with rt.db.read() as session:
        assert [one.id for one in await session.scalars(select(Item))] == [kept.id]
        assert [tag.space for tag in await session.scalars(select(Tag))] == [bob.id]
        exported = [kind async for kind, _ in export_user_data(session, bob.id)]
    assert exported == ["item"]
