"""The model tier over HTTP: a model that works, one that does not, and what an item shows then."""

import asyncio
import json
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.jobs.worker import JobWorker
from refract.library.models import LedgerEntry, QuotaDay
from tests.client import on_sqlite
from tests.library.conftest import Look, Save
from tests.library.http import GOOD, Answer, Model, Site, completion, page

pytestmark = on_sqlite

STEAM = page(
    "How steam engines work",
    "A steam engine turns the heat of burning coal into motion, and Watt made it better. " * 4,
)
OFFLINE = ("READY_TO_CONFIRM", "SYSTEM", "How steam engines work")


async def _books(rt: Runtime) -> tuple[int, list[tuple[str, str | None]]]:
    """Return the counter, and the ledger that must explain it."""
    async with rt.db.read() as session:
        used = await session.scalar(select(QuotaDay.used)) or 0
        entries = list(await session.scalars(select(LedgerEntry).order_by(LedgerEntry.id)))
    assert used == sum(entry.units if entry.kind == "charge" else -entry.units for entry in entries)
    return used, [(entry.kind, entry.reason) for entry in entries]


async def test_a_model_upgrades_the_offline_proposal(
    rt: Runtime,
    work: JobWorker,
    save: Save,
    look: Look,
    site: Site,
    model: Model,
    as_ada: AsyncClient,
) -> None:
    site.pages["/a"] = STEAM
    await save("An older note.", enrich=False, new_tags=["Engines"])
    item = await save(site.url("/a"))

    await work.run_due_jobs()

    seen = await look(item)
    assert (seen.status, seen.enrichment, seen.title, seen.note) == (
        "READY_TO_CONFIRM",
        "AI",
        GOOD["title"],
        None,
    )
    by_name = {one.name: one for one in seen.suggestions}
    assert by_name["Engines"].source == "AI", "the person's own spelling of what the model said"
    assert by_name["Engines"].confidence > 0.75, "two that think alike are surer than one"
    assert by_name["history"].source == "AI"
    (question,) = model.questions
    assert question["model"] == "tiny"
    assert question["response_format"]["type"] == "json_schema"
    told = json.loads(question["messages"][1]["content"])
    assert told["known_tags"] == ["Engines"]
    assert "burning coal" in told["document"]["text"]
    assert await _books(rt) == (1, [("charge", None)])
    quota = await as_ada.get("/api/v1/me/quota")
    assert quota.json() == {
        "limit": 50,
        "used": 1,
        "remaining": 49,
        "resets_at": "2026-06-02T00:00:00Z",
    }
    assert (quota.headers["x-ai-quota-limit"], quota.headers["x-ai-quota-remaining"]) == (
        "50",
        "49",
    )


BAD: dict[str, tuple[list[Answer], str]] = {
    "an error": ([(503, "text/plain", b"busy")], "MODEL_UNAVAILABLE"),
    "a wrong key": ([(401, "application/json", b"{}")], "MODEL_UNAVAILABLE"),
    "a redirect": ([(302, "text/plain", b"")], "MODEL_UNAVAILABLE"),
    "no JSON": ([(200, "application/json", b"<html>")], "MODEL_NOT_UNDERSTOOD"),
    "another shape": ([(200, "application/json", b'{"choices": []}')], "MODEL_NOT_UNDERSTOOD"),
    "no text": (
        [(200, "application/json", b'{"choices": [{"message": {"content": null}}]}')],
        "MODEL_NOT_UNDERSTOOD",
    ),
    "prose": ([completion("I would rather talk.")], "MODEL_NOT_UNDERSTOOD"),
    "half an object": ([completion('{"title": "x", "summ')], "MODEL_NOT_UNDERSTOOD"),
    "a field missing": ([completion({"title": "x", "tags": ["y"]})], "MODEL_NOT_UNDERSTOOD"),
    "a title too long": ([completion({**GOOD, "title": "x" * 101})], "MODEL_NOT_UNDERSTOOD"),
    "a summary too long": ([completion({**GOOD, "summary": "x" * 501})], "MODEL_NOT_UNDERSTOOD"),
    "too many tags": (
        [completion({**GOOD, "tags": ["a1", "b1", "c1", "d1"]})],
        "MODEL_NOT_UNDERSTOOD",
    ),
    "no tag": ([completion({**GOOD, "tags": []})], "MODEL_NOT_UNDERSTOOD"),
    "an address in the summary": (
        [completion({**GOOD, "summary": "See https://evil.example/x"})],
        "MODEL_NOT_UNDERSTOOD",
    ),
    "a bare address in the title": (
        [completion({**GOOD, "title": "Go to www.evil.example now"})],
        "MODEL_NOT_UNDERSTOOD",
    ),
    "markup": (
        [completion({**GOOD, "summary": "<img src=x onerror=alert(1)>"})],
        "MODEL_NOT_UNDERSTOOD",
    ),
    "a tag outside the grammar": (
        [completion({**GOOD, "tags": ["<script>"]})],
        "MODEL_NOT_UNDERSTOOD",
    ),
    "deep nesting": ([completion("[" * 100_000)], "MODEL_NOT_UNDERSTOOD"),
    "an answer without end": ([(200, "application/json", b" " * 400_000)], "MODEL_NOT_UNDERSTOOD"),
}


@pytest.mark.parametrize("case", BAD)
async def test_whatever_a_model_does_the_offline_proposal_stands_and_the_charge_goes_back_once(
    rt: Runtime, work: JobWorker, save: Save, look: Look, site: Site, model: Model, case: str
) -> None:
    site.pages["/a"] = STEAM
    model.says, note = list(BAD[case][0]), BAD[case][1]
    item = await save(site.url("/a"))
    assert (await _books(rt))[0] == 1

    await work.run_due_jobs()

    seen = await look(item)
    assert (seen.status, seen.enrichment, seen.title) == OFFLINE
    assert (seen.note, seen.failure) == (note, None)
    assert all(one.source == "SYSTEM" for one in seen.suggestions)
    assert await _books(rt) == (0, [("charge", None), ("refund", note)])


async def test_a_wrong_answer_may_be_put_right_once(
    work: JobWorker, save: Save, look: Look, model: Model
) -> None:
    model.says = [
        completion({**GOOD, "title": "x" * 200}),
        completion(f"Sorry! Here it is:\n```json\n{json.dumps(GOOD)}\n```"),
    ]
    item = await save("A long thought about engines. " * 20)

    await work.run_due_jobs()

    assert ((await look(item)).enrichment, (await look(item)).title) == ("AI", GOOD["title"])
    assert "at most 100" in model.questions[1]["messages"][-1]["content"]


async def test_an_endpoint_without_structured_answers_is_asked_without(
    work: JobWorker, save: Save, look: Look, model: Model
) -> None:
    model.unknown_field = "response_format"
    first, second = await save("A thought about engines."), await save("Another about engines.")

    await work.run_due_jobs()

    assert {(await look(first)).enrichment, (await look(second)).enrichment} == {"AI"}
    assert ["response_format" in question for question in model.questions].count(False) == 2


@pytest.mark.parametrize("given", [{"model_timeout_seconds": 0.3}])
async def test_a_slow_model_is_not_waited_for(
    rt: Runtime, work: JobWorker, save: Save, look: Look, model: Model
) -> None:
    model.pause = 5.0
    item = await save("A thought about engines.")

    await work.run_due_jobs()

    seen = await look(item)
    assert (seen.status, seen.enrichment, seen.note) == (
        "READY_TO_CONFIRM",
        "SYSTEM",
        "MODEL_TOO_SLOW",
    )
    assert (await _books(rt))[0] == 0


@pytest.mark.parametrize("given", [{"model_url": "http://127.0.0.1:9/v1", "model_name": "tiny"}])
async def test_a_model_that_is_away_is_done_without(
    rt: Runtime, work: JobWorker, save: Save, look: Look
) -> None:
    item = await save("A thought about engines.")

    await work.run_due_jobs()

    assert ((await look(item)).status, (await look(item)).note) == (
        "READY_TO_CONFIRM",
        "MODEL_UNAVAILABLE",
    )
    assert await _books(rt) == (0, [("charge", None), ("refund", "MODEL_UNAVAILABLE")])


@pytest.mark.parametrize("given", [{"model_concurrency": 2, "job_concurrency": 8}])
async def test_no_more_questions_at_a_time_than_allowed(
    rt: Runtime,
    work: JobWorker,
    clock: ManualClock,
    save: Save,
    look: Look,
    site: Site,
    model: Model,
) -> None:
    at_once, most = 0, 0
    thinking = 2.0  # long enough for everybody to come and find it busy

    async def respond(_path: str, _body: bytes) -> Answer:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(thinking)
        at_once -= 1
        return completion(GOOD)

    model.server.respond = respond
    site.pages["/a"] = STEAM
    items = [
        await save(site.url("/a")),
        *[await save(f"Thought {number} about engines.") for number in range(7)],
    ]

    await work.run_due_jobs()

    thinking = 0.05
    waiting = [item for item in items if (await look(item)).status == "ENRICHING"]
    assert waiting, (
        "who finds the model busy comes back, and takes no place from other work meanwhile"
    )
    assert all([(await look(item)).title for item in waiting]), "the offline proposal shows"
    while await work.run_due_jobs() or any(
        [(await look(item)).status == "ENRICHING" for item in items]
    ):
        clock.advance(10)
    assert most == 2
    assert {(await look(item)).enrichment for item in items} == {"AI"}
    assert len(site.server.asked) == 1, "a page is fetched once"
    assert await _books(rt) == (8, [("charge", None)] * 8)


async def test_who_wants_no_suggestions_is_not_charged(
    rt: Runtime,
    work: JobWorker,
    save: Save,
    look: Look,
    model: Model,
    as_ada: AsyncClient,
    ada: User,
) -> None:
    await as_ada.patch("/api/v1/me", json={"preferences": {"suggestions": False}})
    async with rt.db.read() as session:
        ada = await session.get_one(User, ada.id)

    item = await save("A thought about engines.", by=ada)
    await work.run_due_jobs()

    assert ((await look(item)).enrichment, (await look(item)).note) == ("SYSTEM", "SUGGESTIONS_OFF")
    assert (model.questions, await _books(rt)) == ([], (0, []))


async def test_a_retry_is_not_charged_again(
    rt: Runtime,
    work: JobWorker,
    save: Save,
    look: Look,
    site: Site,
    model: Model,
    as_ada: AsyncClient,
) -> None:
    item = await save(site.url("/a"))  # 404
    await work.run_due_jobs()
    assert ((await look(item)).status, (await look(item)).failure) == (
        "FAILED",
        "The server responded with an error.",
    )
    assert model.questions == []
    site.pages["/a"] = STEAM

    assert (await as_ada.post(f"/api/v1/items/{item.id}/retry")).json()["status"] == "ENRICHING"
    await work.run_due_jobs()

    assert ((await look(item)).status, (await look(item)).enrichment) == ("READY_TO_CONFIRM", "AI")
    assert await _books(rt) == (1, [("charge", None)])


async def test_the_model_has_no_say_over_what_a_person_wrote(
    rt: Runtime, work: JobWorker, save: Save, look: Look, model: Model, as_ada: AsyncClient
) -> None:
    item = await save("A thought about engines.")
    await as_ada.patch(f"/api/v1/items/{item.id}", json={"title": "Mine"})

    await work.run_due_jobs()

    assert ((await look(item)).title, (await look(item)).summary) == ("Mine", GOOD["summary"])


async def test_the_offline_proposal_shows_while_the_model_is_being_asked(
    work: JobWorker, save: Save, look: Look, site: Site, model: Model
) -> None:
    site.pages["/a"] = STEAM
    seen: list[Any] = []

    async def respond(_path: str, _body: bytes) -> Answer:
        seen.append(await look(item))
        return completion(GOOD)

    model.server.respond = respond
    item = await save(site.url("/a"))

    await work.run_due_jobs()

    assert (seen[0].status, seen[0].title) == ("ENRICHING", "How steam engines work")
    assert (await look(item)).title == GOOD["title"]


async def test_what_is_confirmed_or_discarded_meanwhile_stays_so(
    work: JobWorker, save: Save, look: Look, model: Model, as_ada: AsyncClient
) -> None:
    async def respond(_path: str, _body: bytes) -> Answer:
        await as_ada.post(f"/api/v1/items/{item.id}/discard")
        return completion(GOOD)

    model.server.respond = respond
    item = await save("A thought about engines.")

    await work.run_due_jobs()

    seen = await look(item)
    assert (seen.status, seen.enrichment) == ("DISCARDED", "SYSTEM")
    assert seen.title != GOOD["title"]
