"""Access to lists: only the creator's cookie or the owner."""

import asyncio
import uuid
from typing import Any

from httpx import AsyncClient, Response
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.lists.models import LinkList
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.lists.clients import code, creator, new_list, published, read

URL = "https://example.com/page"


def _calls(list_id: str, entry_id: str) -> list[tuple[str, str, Any]]:
    path = f"/api/v1/lists/{list_id}"
    return [
        ("GET", path, None),
        ("PATCH", path, {"title": "x"}),
        ("DELETE", path, None),
        ("POST", f"{path}/entries", {"url": URL}),
        ("POST", f"{path}/entries", {"urls": [URL]}),
        ("PATCH", f"{path}/entries/{entry_id}", {"title": "x"}),
        ("DELETE", f"{path}/entries/{entry_id}", None),
        ("PUT", f"{path}/order", {"entry_ids": [entry_id]}),
        ("POST", f"{path}/slug", {"slug": "stolen"}),
        ("POST", f"{path}/publish", {"slug": "stolen"}),
        ("POST", f"{path}/editions", None),
    ]


async def _all_refused(client: AsyncClient, found: dict[str, Any], headers: dict[str, str]) -> None:
    for method, path, body in _calls(found["id"], found["entries"][0]["id"]):
        response = await client.request(method, path, headers=headers, json=body)
        assert code(response) == (404, "LIST_NOT_FOUND"), f"{method} {path}"


async def _person(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user))


@on_sqlite
async def test_every_foreign_call_finds_nothing(
    client: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    mine, ada_key, bob_key = creator(), await _person(rt, ada), await _person(rt, bob)
    lists = {
        "a stranger's draft": (
            await new_list(client, mine, URL),
            [creator(), {}, ada_key, ada_key | creator()],
        ),
        "a stranger's published list": (
            await published(client, mine, "public-one", URL),
            [creator(), {}, ada_key],
        ),
        "a person's draft": (
            await new_list(client, ada_key, URL),
            [creator(), {}, mine, bob_key, bob_key | creator()],
        ),
        "a person's published list": (
            await published(client, ada_key, "public-two", URL),
            [creator(), {}, bob_key],
        ),
    }
    for found, others in lists.values():
        for headers in others:
            await _all_refused(client, found, headers)
    assert (
        await read(client, mine, lists["a stranger's draft"][0]["id"])
        == lists["a stranger's draft"][0]
    )
    assert (
        await read(client, ada_key, lists["a person's draft"][0]["id"])
        == lists["a person's draft"][0]
    )


@on_sqlite
async def test_the_cookie_alone_changes_nothing_without_proof_of_origin(
    client: AsyncClient,
) -> None:
    token = str(uuid.uuid4())
    found = await new_list(client, creator(token), URL)
    unproven = creator(token, proven=False)

    assert (await client.get(f"/api/v1/lists/{found['id']}", headers=unproven)).status_code == 200
    for method, path, body in _calls(found["id"], found["entries"][0]["id"])[1:]:
        assert code(await client.request(method, path, headers=unproven, json=body)) == (
            403,
            "CSRF_FAILED",
        )
    assert code(
        await client.post("/api/v1/lists", headers=unproven | {"Origin": "https://evil.example"})
    ) == (403, "CSRF_FAILED")


async def test_claim_needs_the_cookie_and_ends_it(
    client: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    token = str(uuid.uuid4())
    mine, ada_key = creator(token), await _person(rt, ada)
    draft = await new_list(client, mine, URL)
    public = await published(client, mine, "reading", URL)
    other = await new_list(client, creator(), URL)

    nothing = await client.post("/api/v1/lists/claim", headers=ada_key)
    strange = await client.post("/api/v1/lists/claim", headers=ada_key | creator())
    unproven = await client.post(
        "/api/v1/lists/claim", headers=ada_key | creator(token, proven=False)
    )
    assert [response.json()["claimed"] for response in (nothing, strange, unproven)] == [0, 0, 0]

    claimed = await client.post("/api/v1/lists/claim", headers=ada_key | mine)

    assert claimed.json() == {"claimed": 2, "list_ids": [draft["id"], public["id"]]}
    await _all_refused(client, draft, mine)  # the cookie alone no longer edits
    await _all_refused(client, other, ada_key)
    assert (await read(client, ada_key, draft["id"]))["entries"] == draft["entries"]
    listed = (await client.get("/api/v1/lists", headers=ada_key)).json()["items"]
    assert [one["id"] for one in listed] == [public["id"], draft["id"]]
    assert (await client.get("/api/v1/lists", headers=mine)).json()["items"] == []
    later = await client.post("/api/v1/lists/claim", headers=await _person(rt, bob) | mine)
    assert later.json()["claimed"] == 0
    assert code(await client.post("/api/v1/lists/claim", headers=mine)) == (401, "SIGN_IN_REQUIRED")


@on_sqlite
async def test_two_people_claim_one_cookie(
    client: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    mine = creator()
    for _ in range(3):
        await new_list(client, mine, URL)
    keys = [await _person(rt, ada), await _person(rt, bob)]

    answers = await asyncio.gather(
        *(client.post("/api/v1/lists/claim", headers=key | mine) for key in keys)
    )

    assert sorted(answer.json()["claimed"] for answer in answers) == [0, 3]


@on_sqlite
async def test_a_signed_in_browser_claims_what_its_cookie_made_by_editing_it(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    token = str(uuid.uuid4())
    draft = await new_list(client, creator(token), URL)
    async with rt.db.write() as session:
        signed_in = by_cookie(rt, await make.cookie(session, rt, ada))
    both = signed_in | {"Cookie": f"{signed_in['Cookie']}; refract_creator={token}"}

    before = await client.get("/app/lists", headers=both | {"Accept": "text/html"})
    assert (
        await client.patch(f"/api/v1/lists/{draft['id']}", headers=both, json={"title": "Mine"})
    ).status_code == 200
    after = await client.get("/app/lists", headers=both | {"Accept": "text/html"})

    assert "before signing in." in before.text
    assert "before signing in." not in after.text
    assert (await client.get(f"/api/v1/lists/{draft['id']}", headers=signed_in)).json()[
        "title"
    ] == "Mine"
    assert (
        await client.get(f"/api/v1/lists/{draft['id']}", headers=creator(token))
    ).status_code == 404


@on_sqlite
async def test_an_administrator_may_delete_any_list_and_it_is_written_down(
    client: AsyncClient, rt: Runtime, root: User
) -> None:
    found = await published(client, creator(), "prizes", URL)
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, root, *make.ALL))

    assert (await client.delete(f"/api/v1/lists/{found['id']}", headers=key)).status_code == 204
    async with rt.db.read() as session:
        noted = [
            (one.action, one.actor_id, one.target)
            for one in await session.scalars(select(AuditEntry))
        ]
    assert ("list.deleted", root.id, found["id"]) in noted


@on_sqlite
async def test_idempotency_keys_of_strangers_are_their_own(
    client: AsyncClient, rt: Runtime
) -> None:
    one, other = creator(), creator()
    key = {"Idempotency-Key": "same"}

    first, again, foreign = [
        await client.post("/api/v1/lists", headers=headers | key) for headers in (one, one, other)
    ]
    bare, bare_again = [await client.post("/api/v1/lists", headers=key) for _ in range(2)]

    assert first.json()["id"] == again.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"
    assert len({response.json()["id"] for response in (first, foreign, bare, bare_again)}) == 4
    async with rt.db.read() as session:
        assert len(list(await session.scalars(select(LinkList)))) == 4


def _limited(response: Response) -> None:
    assert code(response) == (429, "RATE_LIMITED")
    assert int(response.headers["retry-after"]) > 0


@on_sqlite
async def test_strangers_of_one_network_share_their_limits(
    client: AsyncClient, rt: Runtime, clock: ManualClock, ada: User
) -> None:
    me = creator()
    first = await published(client, me, "reading", URL)
    made = [await client.post("/api/v1/lists", headers=creator()) for _ in range(19)]
    assert {response.status_code for response in made} == {201}
    _limited(await client.post("/api/v1/lists", headers=creator()))
    _limited(await client.post(f"/api/v1/lists/{first['id']}/editions", headers=me))
    assert (await client.post("/api/v1/lists", headers=await _person(rt, ada))).status_code == 201

    clock.advance(3600)  # the limits of an hour are whole again
    mine = creator()
    found = await new_list(client, mine)
    path = f"/api/v1/lists/{found['id']}/entries"
    assert (await client.post(path, headers=mine, json={"urls": [URL] * 199})).json()[
        "created"
    ] == 199
    last = (await client.post(path, headers=mine, json={"urls": [URL, "nothing", URL, URL]})).json()
    assert [one["status"] for one in last["results"]] == [201, 422, 429, 429]
    assert last["results"][2]["error"]["code"] == "RATE_LIMITED"
    _limited(await client.post(path, headers=mine, json={"url": URL}))
    assert len((await read(client, mine, found["id"]))["entries"]) == 200


async def test_the_first_of_a_network_may_come_together(client: AsyncClient) -> None:
    """One of them creates the bucket; the others wait for it."""
    answers = await asyncio.gather(
        *(client.post("/api/v1/lists", headers=creator()) for _ in range(6))
    )

    assert {answer.status_code for answer in answers} == {201}


@on_sqlite
async def test_my_lists_page_by_page(client: AsyncClient, rt: Runtime, clock: ManualClock) -> None:
    mine = creator()
    for number in range(5):
        await new_list(client, mine, title=f"List {number}")
        clock.advance(1)
    await published(client, mine, "reading", title="Last one")

    titles: list[str] = []
    cursor = None
    while True:
        asked = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/api/v1/lists", headers=mine, params=asked)).json()
        titles += [one["title"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert titles == ["Last one", "List 4", "List 3", "List 2", "List 1", "List 0"]
    drafts = await client.get(
        "/api/v1/lists", headers=mine, params={"status": "draft", "q": "LIST 3"}
    )
    assert [one["title"] for one in drafts.json()["items"]] == ["List 3"]
    assert code(await client.get("/api/v1/lists", headers=mine, params={"cursor": "x"})) == (
        400,
        "INVALID_CURSOR",
    )
    assert (await client.get("/api/v1/lists")).json() == {"items": [], "next_cursor": None}
