"""The API contract of the seed (A0): every status and every error code of each call.

Names are ours, codes are those of the specification.
"""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity.models import User
from refract.lists.models import LinkList, ListAction
from refract.names.models import Name
from tests import make
from tests.client import by_key, on_sqlite
from tests.lists.clients import code, creator, new_list, published, read

ME = creator(str(uuid.uuid4()))
SOMEBODY_ELSE = creator(str(uuid.uuid4()))
URL = "https://example.com/page"


# -- POST /lists


async def test_create_with_an_empty_body_gives_an_empty_draft_and_a_cookie(
    client: AsyncClient, rt: Runtime
) -> None:
    response = await client.post("/api/v1/lists")

    assert response.status_code == 201
    made = response.json()
    assert {
        name: made[name]
        for name in ("status", "slug", "title", "description", "published_at", "url", "entries")
    } == {
        "status": "draft",
        "slug": None,
        "title": None,
        "description": None,
        "published_at": None,
        "url": None,
        "entries": [],
    }
    assert made["created_at"] == made["updated_at"] == "2026-06-01T12:00:00Z"
    cookie = response.headers["set-cookie"]
    token = cookie.split(";")[0].removeprefix("refract_creator=")
    assert str(uuid.UUID(token)) == token
    assert {"HttpOnly", "SameSite=lax", "Max-Age=2592000", "Path=/"} <= set(cookie.split("; "))
    assert (await read(client, creator(token), made["id"]))["id"] == made["id"]
    async with rt.db.read() as session:
        stored = await session.get_one(LinkList, int(made["id"]))
    assert stored.creator_hash == hash_credential(token)  # hashed at rest


@on_sqlite
async def test_create_with_title_and_description(client: AsyncClient) -> None:
    made = await new_list(client, ME, title="  Reading ", description="For new people.")

    assert (made["title"], made["description"]) == ("Reading", "For new people.")


@on_sqlite
async def test_create_refuses_what_does_not_fit(client: AsyncClient) -> None:
    for body in ({"title": "x" * 201}, {"description": "x" * 2001}, {"name": "x"}):
        assert code(await client.post("/api/v1/lists", headers=ME, json=body)) == (
            422,
            "VALIDATION_FAILED",
        )


@on_sqlite
async def test_a_signed_in_persons_list_is_theirs_without_a_cookie(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))

    response = await client.post("/api/v1/lists", headers=key)

    assert "set-cookie" not in response.headers
    assert (await client.get("/api/v1/lists", headers=key)).json()["items"][0][
        "id"
    ] == response.json()["id"]


# -- reading a list


async def test_read_gives_the_list_with_its_entries_in_order(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL, "https://example.com/other", f"{URL}/?utm_source=x#top")

    entries = (await read(client, ME, made["id"]))["entries"]

    assert [(one["position"], one["duplicate"], one["fetch_status"]) for one in entries] == [
        (1, False, "pending"),
        (2, False, "pending"),
        (3, True, "pending"),
    ]
    assert entries[2]["url"] == f"{URL}/?utm_source=x#top"
    assert entries[2]["normalized_url"] == entries[0]["normalized_url"] == URL
    assert set(entries[0]) >= {
        "id",
        "url",
        "normalized_url",
        "title",
        "description",
        "image",
        "fetch_status",
        "position",
        "duplicate",
    }


@on_sqlite
@pytest.mark.parametrize(
    "headers",
    [SOMEBODY_ELSE, {}, creator("not-a-uuid")],
    ids=["another cookie", "no cookie", "a broken cookie"],
)
async def test_read_of_a_foreign_list_looks_like_an_absent_one(
    client: AsyncClient, headers: dict[str, str]
) -> None:
    made = await new_list(client, ME)

    foreign = await client.get(f"/api/v1/lists/{made['id']}", headers=headers)
    absent = await client.get("/api/v1/lists/361890234523648", headers=headers)

    assert code(foreign) == code(absent) == (404, "LIST_NOT_FOUND")
    assert foreign.json()["detail"] == absent.json()["detail"]


# -- adding entries


async def test_an_entry_is_pending_at_the_end_and_says_whether_it_is_a_duplicate(
    client: AsyncClient,
) -> None:
    made = await new_list(client, ME, URL)

    response = await client.post(
        f"/api/v1/lists/{made['id']}/entries",
        headers=ME,
        json={"url": "HTTPS://EXAMPLE.com:443/page/#x"},
    )

    assert response.status_code == 201
    added = response.json()
    assert (added["fetch_status"], added["position"], added["duplicate"], added["title"]) == (
        "pending",
        2,
        True,
        None,
    )
    assert added["url"] == "HTTPS://EXAMPLE.com:443/page/#x"


TYPED = [
    ("example.com/page", "https://example.com/page", "https://example.com/page"),
    (
        "  http://Example.com:80/a//b/?b=2&a=1&utm_medium=x&gclid=1&fbclid=2#f ",
        None,
        "http://example.com/a//b?a=1&b=2",
    ),
    (
        "https://münchen.example/ä",
        "https://xn--mnchen-3ya.example/ä",
        "https://xn--mnchen-3ya.example/%C3%A4",
    ),
    ("https://example.com/{a}?q={b}", None, "https://example.com/%7Ba%7D?q=%7Bb%7D"),
]


@on_sqlite
async def test_addresses_are_kept_as_typed_and_compared_normalised(client: AsyncClient) -> None:
    made = await new_list(client, ME)

    for typed, url, normalized in TYPED:
        added = (
            await client.post(
                f"/api/v1/lists/{made['id']}/entries", headers=ME, json={"url": typed}
            )
        ).json()
        assert (added["url"], added["normalized_url"]) == (url or typed.strip(), normalized)


BAD = [
    "",
    "   ",
    "nothing",
    "ftp://example.com/",
    "javascript:alert(1)",
    "https://user:pw@example.com/",
    "https://",
    "https://exa mple.com/",
    "https://example.com/" + "x" * 2000,
    "https://example.com/\nx",
    "http://good\\@evil.example/",
    "https://" + "a." * 500 + "example/",
]


@on_sqlite
async def test_a_bad_address_is_refused(client: AsyncClient) -> None:
    made = await new_list(client, ME)

    for url in BAD:
        response = await client.post(
            f"/api/v1/lists/{made['id']}/entries", headers=ME, json={"url": url}
        )

        assert code(response) == (422, "INVALID_URL"), url
        assert response.json()["errors"][0]["field"] == "url"


@on_sqlite
async def test_either_one_address_or_many(client: AsyncClient) -> None:
    made = await new_list(client, ME)
    bodies: list[Any] = [
        {},
        {"url": URL, "urls": [URL]},
        {"urls": []},
        {"urls": [URL] * 201},
        {"href": URL},
        {"url": None},
    ]

    for body in bodies:
        response = await client.post(f"/api/v1/lists/{made['id']}/entries", headers=ME, json=body)
        assert code(response) == (422, "VALIDATION_FAILED"), body


async def test_many_addresses_have_a_result_each(client: AsyncClient) -> None:
    made = await new_list(client, ME)

    response = await client.post(
        f"/api/v1/lists/{made['id']}/entries",
        headers=ME,
        json={"urls": [URL, "nothing", URL, "b.example"]},
    )

    assert response.status_code == 200
    body = response.json()
    assert (body["created"], body["failed"]) == (3, 1)
    assert [(one["index"], one["status"]) for one in body["results"]] == [
        (0, 201),
        (1, 422),
        (2, 201),
        (3, 201),
    ]
    assert body["results"][1]["error"]["code"] == "INVALID_URL"
    assert [one["entry"]["position"] for one in body["results"] if one["entry"]] == [1, 2, 3]
    assert [one["entry"]["duplicate"] for one in body["results"] if one["entry"]] == [
        False,
        True,
        False,
    ]


# -- PATCH and DELETE of an entry


@on_sqlite
async def test_change_an_entry(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL)
    path = f"/api/v1/lists/{made['id']}/entries/{made['entries'][0]['id']}"

    response = await client.patch(path, headers=ME, json={"title": "Mine"})
    again = await client.patch(path, headers=ME, json={"description": "About it", "title": None})

    assert (response.status_code, response.json()["title"]) == (200, "Mine")
    assert (again.json()["title"], again.json()["description"]) == (None, "About it")


async def test_another_url_takes_over_unless_texts_were_written(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL, "https://example.com/b")
    path = f"/api/v1/lists/{made['id']}/entries/{made['entries'][0]['id']}"
    await client.patch(path, headers=ME, json={"title": "Mine"})

    moved = await client.patch(path, headers=ME, json={"url": "EXAMPLE.com/b?utm_source=x"})

    assert moved.status_code == 200
    body = moved.json()
    assert (body["url"], body["normalized_url"]) == (
        "https://EXAMPLE.com/b?utm_source=x",
        "https://example.com/b",
    )
    assert (body["title"], body["fetch_status"], body["position"]) == ("Mine", "pending", 1)
    assert [entry["duplicate"] for entry in (await read(client, ME, made["id"]))["entries"]] == [
        False,
        True,
    ]
    loop = await client.patch(path, headers=ME, json={"url": "http://go.test/nowhere"})
    assert code(loop) == (422, "LINK_LOOP")
    stranger = await client.patch(path, headers=creator(), json={"url": "ftp://bad"})
    assert code(stranger) == (404, "LIST_NOT_FOUND")
    again = await client.post(f"{path}/fetch", headers=ME)
    assert (again.status_code, again.json()["fetch_status"]) == (200, "pending")


@on_sqlite
async def test_change_refuses_what_does_not_fit(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL)
    path = f"/api/v1/lists/{made['id']}/entries/{made['entries'][0]['id']}"
    bodies: list[Any] = [{"title": "x" * 201}, {"href": "https://example.com/"}, {"description": 1}]

    for body in bodies:
        assert code(await client.patch(path, headers=ME, json=body)) == (422, "VALIDATION_FAILED")


async def test_remove_an_entry_and_the_rest_moves_up(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL, "https://example.com/2", "https://example.com/3")

    response = await client.delete(
        f"/api/v1/lists/{made['id']}/entries/{made['entries'][0]['id']}", headers=ME
    )

    assert response.status_code == 204
    entries = (await read(client, ME, made["id"]))["entries"]
    assert [(one["position"], one["url"]) for one in entries] == [
        (1, "https://example.com/2"),
        (2, "https://example.com/3"),
    ]


@on_sqlite
async def test_an_entry_of_another_list_is_not_there(client: AsyncClient) -> None:
    made, other = await new_list(client, ME, URL), await new_list(client, ME, URL)
    path = f"/api/v1/lists/{made['id']}/entries/{other['entries'][0]['id']}"

    assert code(await client.patch(path, headers=ME, json={"title": "x"})) == (
        404,
        "ENTRY_NOT_FOUND",
    )
    assert code(await client.delete(path, headers=ME)) == (404, "ENTRY_NOT_FOUND")


# -- PUT /order


async def test_reorder_and_nothing_but_a_permutation(client: AsyncClient) -> None:
    made = await new_list(
        client, ME, "https://example.com/1", "https://example.com/2", "https://example.com/3"
    )
    one, two, three = [entry["id"] for entry in made["entries"]]
    path = f"/api/v1/lists/{made['id']}/order"

    response = await client.put(path, headers=ME, json={"entry_ids": [three, one, two]})

    assert response.status_code == 200
    assert [entry["id"] for entry in response.json()["entries"]] == [three, one, two]
    for wrong in ([three, one], [three, one, two, two], [three, one, one], [], [three, one, "1"]):
        assert code(await client.put(path, headers=ME, json={"entry_ids": wrong})) == (
            409,
            "ORDER_MISMATCH",
        )
    assert [entry["position"] for entry in (await read(client, ME, made["id"]))["entries"]] == [
        1,
        2,
        3,
    ]


# -- deleting a list


@pytest.mark.parametrize("state", ["draft", "published"])
async def test_delete_in_any_state_and_the_name_is_kept_for_undo(
    client: AsyncClient, rt: Runtime, state: str
) -> None:
    made = (
        await published(client, ME, "reading")
        if state == "published"
        else await new_list(client, ME, URL)
    )

    response = await client.delete(f"/api/v1/lists/{made['id']}", headers=ME)

    assert response.status_code == 204
    assert code(await client.get(f"/api/v1/lists/{made['id']}", headers=ME)) == (
        404,
        "LIST_NOT_FOUND",
    )
    assert code(await client.delete(f"/api/v1/lists/{made['id']}", headers=ME)) == (
        404,
        "LIST_NOT_FOUND",
    )
    free = (await client.get("/api/v1/names/reading", params={"kind": "list"})).json()["available"]
    assert free == (state == "draft")
    async with rt.db.read() as session:
        kept = {name.name: name.held_until for name in await session.scalars(select(Name))}
        events = [
            (action.event, action.slug)
            for action in await session.scalars(select(ListAction).order_by(ListAction.id))
        ]
    assert kept == (
        {"reading": rt.clock.now() + timedelta(hours=24)} if state == "published" else {}
    )
    assert events == (
        [("publish", "reading"), ("delete", "reading")]
        if state == "published"
        else [("delete", None)]
    )


# -- availability, slug


@on_sqlite
async def test_availability(client: AsyncClient) -> None:
    await published(client, ME, "reading")

    async def asked(name: str) -> tuple[bool, str | None]:
        body = (await client.get(f"/api/v1/names/{name}", params={"kind": "list"})).json()
        return body["available"], body["reason"]

    assert await asked("free-name") == (True, None)
    assert await asked("reading") == (False, "SLUG_TAKEN")
    assert await asked("ab") == (False, "INVALID_SLUG")
    assert await asked("Reading2") == (False, "INVALID_SLUG")
    assert await asked("admin") == (False, "SLUG_RESERVED")


async def test_a_slug_is_only_a_wish_and_can_be_changed(client: AsyncClient, rt: Runtime) -> None:
    mine, theirs = await new_list(client, ME, URL), await new_list(client, SOMEBODY_ELSE, URL)

    for made, headers in ((mine, ME), (theirs, SOMEBODY_ELSE)):
        response = await client.post(
            f"/api/v1/lists/{made['id']}/slug", headers=headers, json={"slug": "reading"}
        )
        assert (response.status_code, response.json()["slug"], response.json()["status"]) == (
            200,
            "reading",
            "draft",
        )
    changed = await client.post(
        f"/api/v1/lists/{mine['id']}/slug", headers=ME, json={"slug": "books"}
    )

    assert changed.json()["slug"] == "books"
    async with rt.db.read() as session:
        assert list(await session.scalars(select(Name))) == []


@on_sqlite
async def test_a_slug_that_cannot_be(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL)

    for slug in ("ab", "x" * 41, "Upper", "under_score", "-dash", "spa ce", "ümlaut", ""):
        response = await client.post(
            f"/api/v1/lists/{made['id']}/slug", headers=ME, json={"slug": slug}
        )
        assert code(response) == (422, "INVALID_SLUG"), slug


@on_sqlite
async def test_a_reserved_slug_and_a_taken_one(client: AsyncClient, rt: Runtime, ada: User) -> None:
    made = await new_list(client, ME, URL)
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="Road_Map")
    path = f"/api/v1/lists/{made['id']}/slug"

    assert code(await client.post(path, headers=ME, json={"slug": "health"})) == (
        422,
        "SLUG_RESERVED",
    )
    assert code(await client.post(path, headers=ME, json={"slug": "road-map"})) == (
        409,
        "SLUG_TAKEN",
    )


# -- publish


async def test_publish_under_the_wished_slug(client: AsyncClient, clock: ManualClock) -> None:
    made = await new_list(client, ME, URL)
    await client.post(f"/api/v1/lists/{made['id']}/slug", headers=ME, json={"slug": "reading"})
    clock.advance(60)

    response = await client.post(f"/api/v1/lists/{made['id']}/publish", headers=ME, json={})

    assert response.status_code == 200
    body = response.json()
    assert (body["id"], body["slug"], body["status"], body["published_at"]) == (
        made["id"],
        "reading",
        "published",
        "2026-06-01T12:01:00Z",
    )
    assert (body["url"], body["edition"]) == ("http://go.test/reading", 1)


async def test_publish_makes_a_slug_up(client: AsyncClient) -> None:
    made = await new_list(client, ME, URL)

    body = (await client.post(f"/api/v1/lists/{made['id']}/publish", headers=ME)).json()

    assert len(body["slug"]) == 8
    assert body["slug"].isalnum()
    assert body["slug"] == body["slug"].lower()
    assert (await client.get(f"/api/v1/public/lists/{body['slug']}")).status_code == 200


@on_sqlite
async def test_an_empty_list_is_not_published(client: AsyncClient) -> None:
    made = await new_list(client, ME)

    assert code(await client.post(f"/api/v1/lists/{made['id']}/publish", headers=ME)) == (
        422,
        "EMPTY_LIST",
    )


async def test_a_slug_that_was_taken_meanwhile_is_a_conflict_and_can_be_retried(
    client: AsyncClient,
) -> None:
    made = await new_list(client, ME, URL)
    await client.post(f"/api/v1/lists/{made['id']}/slug", headers=ME, json={"slug": "reading"})
    await published(client, SOMEBODY_ELSE, "reading")

    refused = await client.post(f"/api/v1/lists/{made['id']}/publish", headers=ME)
    retried = await client.post(
        f"/api/v1/lists/{made['id']}/publish", headers=ME, json={"slug": "reading-2"}
    )

    assert code(refused) == (409, "SLUG_TAKEN")
    assert (retried.status_code, retried.json()["slug"]) == (200, "reading-2")


async def test_a_published_list_is_immutable(client: AsyncClient) -> None:
    made = await published(client, ME, "reading")
    path, entry = f"/api/v1/lists/{made['id']}", made["entries"][0]["id"]
    ids = [one["id"] for one in made["entries"]]

    refused = [
        await client.post(f"{path}/publish", headers=ME),
        await client.post(f"{path}/slug", headers=ME, json={"slug": "other"}),
        await client.post(f"{path}/entries", headers=ME, json={"url": URL}),
        await client.post(f"{path}/entries", headers=ME, json={"urls": [URL]}),
        await client.patch(f"{path}/entries/{entry}", headers=ME, json={"title": "x"}),
        await client.delete(f"{path}/entries/{entry}", headers=ME),
        await client.put(f"{path}/order", headers=ME, json={"entry_ids": ids[::-1]}),
        await client.patch(path, headers=ME, json={"title": "x"}),
    ]

    assert {code(response) for response in refused} == {(409, "LIST_IMMUTABLE")}
    assert await read(client, ME, made["id"]) == made


# -- the public list


async def test_everybody_reads_a_published_list(client: AsyncClient) -> None:
    made = await published(client, ME, "reading", URL, title="Reading")
    entry = made["entries"][0]["id"]

    response = await client.get("/api/v1/public/lists/Reading")

    assert response.status_code == 200
    assert response.json() == {
        "slug": "reading",
        "title": "Reading",
        "description": None,
        "palette": "cobalt",
        "layout": "list",
        "cover": "none",
        "author": None,
        "edition": 1,
        "latest_edition": 1,
        "published_at": "2026-06-01T12:00:00Z",
        "url": "http://go.test/reading",
        "entries": [
            {
                "position": 1,
                "section": None,
                "url": URL,
                "title": None,
                "description": None,
                "image": None,
            }
        ],
    }
    assert entry not in response.text


@on_sqlite
async def test_unknown_draft_and_deleted_are_not_found(client: AsyncClient) -> None:
    draft = await new_list(client, ME, URL)
    await client.post(f"/api/v1/lists/{draft['id']}/slug", headers=ME, json={"slug": "a-draft"})
    gone = await published(client, ME, "gone")
    await client.delete(f"/api/v1/lists/{gone['id']}", headers=ME)

    for slug in ("unknown", "a-draft", "gone"):
        assert code(await client.get(f"/api/v1/public/lists/{slug}")) == (404, "LIST_NOT_FOUND")
