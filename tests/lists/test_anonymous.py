"""Lists without an account, as `REFRACT_ANONYMOUS_LISTS` allows them.

The finding: anyone could publish `/company-login` on the operator's domain, indexed by search
engines, and no setting could forbid it (security review, finding 2; operations review, 2.5).
"""

import re
from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists.models import LinkList
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.lists.clients import code, creator, new_list, published, read

pytestmark = on_sqlite
URL = "https://example.com/page"
HTML = {"Accept": "text/html"}


def _set(rt: Runtime, **given: Any) -> None:
    rt.settings = rt.settings.model_copy(update=given)


async def _key(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user))


async def test_off_refuses_every_call_of_a_stranger(client: AsyncClient, rt: Runtime) -> None:
    mine = creator()
    draft = await new_list(client, mine, URL)
    _set(rt, anonymous_lists="off")
    path = f"/api/v1/lists/{draft['id']}"

    for method, address, body in [
        ("POST", "/api/v1/lists", None),
        ("GET", "/api/v1/lists", None),
        ("GET", path, None),
        ("PATCH", path, {"title": "x"}),
        ("POST", f"{path}/entries", {"url": URL}),
        ("POST", f"{path}/slug", {"slug": "company-page"}),
        ("POST", f"{path}/publish", {"slug": "company-page"}),
    ]:
        response = await client.request(method, address, headers=mine, json=body)
        assert code(response) == (401, "ANONYMOUS_LISTS_DISABLED"), f"{method} {address}"
        assert (
            response.json()["detail"]
            == "Lists require an account here. Sign in, or send an API key."
        )


@pytest.mark.parametrize("limit", ["anonymous_lists_per_hour", "anonymous_entries_per_hour"])
async def test_a_limit_of_zero_is_off(client: AsyncClient, rt: Runtime, limit: str) -> None:
    _set(rt, **{limit: 0})

    assert code(await client.post("/api/v1/lists")) == (401, "ANONYMOUS_LISTS_DISABLED")


async def test_off_sends_browsers_to_sign_in_and_offers_no_list(
    client: AsyncClient, rt: Runtime
) -> None:
    _set(rt, anonymous_lists="off")

    for method in ("GET", "POST"):
        page = await client.request(method, "/app/lists", headers=HTML)
        assert (page.status_code, page.headers["location"]) == (303, "/auth/sign-in")
    landing = await client.get("/", headers=HTML)
    assert "Start a list" not in landing.text
    assert "/app/lists" not in landing.text


async def test_the_landing_page_says_what_a_stranger_may_do(
    client: AsyncClient, rt: Runtime
) -> None:
    assert "Start a list, no account needed" in (await client.get("/", headers=HTML)).text

    _set(rt, anonymous_lists="draft")

    assert "Start a list. Sign in to publish it" in (await client.get("/", headers=HTML)).text


async def test_off_leaves_old_drafts_to_be_claimed(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    mine = creator()
    draft = await new_list(client, mine, URL)
    _set(rt, anonymous_lists="off")

    claimed = await client.post("/api/v1/lists/claim", headers=mine | await _key(rt, ada))

    assert claimed.json()["list_ids"] == [draft["id"]]
    assert (await read(client, await _key(rt, ada), draft["id"]))["id"] == draft["id"]


async def test_a_stranger_composes_a_draft_and_publishing_needs_an_account(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    _set(rt, anonymous_lists="draft")
    mine = creator()
    draft = await new_list(client, mine, URL)
    path = f"/api/v1/lists/{draft['id']}/publish"

    refused = await client.post(path, headers=mine, json={"slug": "reading"})
    done = await client.post(path, headers=mine | await _key(rt, ada), json={"slug": "reading"})

    assert code(refused) == (401, "ACCOUNT_REQUIRED_TO_PUBLISH")
    assert (
        refused.json()["detail"]
        == "Publishing requires an account. Sign in, and this draft becomes yours."
    )
    assert done.status_code == 200
    async with rt.db.read() as session:
        found = await session.get_one(LinkList, int(draft["id"]))
        assert (found.owner_id, found.creator_hash) == (ada.id, None)  # signed in, it is claimed


async def test_the_page_of_a_draft_offers_sign_in_and_comes_back(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    _set(rt, anonymous_lists="draft")
    mine = creator()
    draft = await new_list(client, mine, URL)
    path = f"/app/lists/{draft['id']}"

    page = await client.get(path, headers=mine | HTML)
    sent = await client.post(f"{path}/publish", headers=mine | HTML)

    assert "Sign in to publish" in page.text
    assert 'name="slug"' not in page.text
    assert (sent.status_code, sent.headers["location"]) == (303, "/auth/sign-in")
    assert "refract_return=" in sent.headers["set-cookie"]
    async with rt.db.write() as session:
        browser = by_cookie(rt, await make.cookie(session, rt, ada))
    both = browser | {"Cookie": f"{browser['Cookie']}; {mine['Cookie']}"}
    back = await client.get(path, headers=both | HTML)
    assert "Add to my account" in back.text
    assert 'name="slug"' in back.text


async def test_a_list_of_a_stranger_gets_a_generated_name(client: AsyncClient, rt: Runtime) -> None:
    mine = creator()
    draft = await new_list(client, mine, URL)
    path = f"/api/v1/lists/{draft['id']}"
    await client.post(f"{path}/slug", headers=mine, json={"slug": "chosen-before"})
    _set(rt, anonymous_names=False)

    wished = await client.post(f"{path}/slug", headers=mine, json={"slug": "company-page"})
    refused = await client.post(f"{path}/publish", headers=mine, json={"slug": "company-page"})
    page = await client.get(f"/app/lists/{draft['id']}", headers=mine | HTML)
    done = await client.post(f"{path}/publish", headers=mine)

    assert code(wished) == code(refused) == (403, "ACCOUNT_REQUIRED_FOR_NAME")
    assert 'name="slug"' not in page.text
    assert done.status_code == 200
    assert re.fullmatch(r"[a-z0-9]{8,16}", done.json()["slug"])


@pytest.mark.parametrize("name", ["company-login", "payroll", "password-reset", "it-support"])
async def test_a_stranger_gets_no_name_that_promises_a_page_of_the_operator(
    client: AsyncClient, rt: Runtime, ada: User, name: str
) -> None:
    mine = creator()
    draft = await new_list(client, mine, URL)

    refused = await client.post(
        f"/api/v1/lists/{draft['id']}/publish", headers=mine, json={"slug": name}
    )

    assert code(refused) == (422, "SENSITIVE_NAME")
    assert (await published(client, await _key(rt, ada), name, URL))["slug"] == name


async def test_a_sensitive_name_wished_for_earlier_is_not_published(
    client: AsyncClient, rt: Runtime
) -> None:
    mine = creator()
    draft = await new_list(client, mine, URL)
    async with rt.db.write() as session:
        (await session.get_one(LinkList, int(draft["id"]))).slug = "payroll"

    refused = await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=mine)

    assert code(refused) == (422, "SENSITIVE_NAME")


async def test_the_list_of_a_stranger_is_kept_out_of_search_engines(client: AsyncClient) -> None:
    mine = creator()
    found = await published(client, mine, "reading-one", URL)
    edition = await client.post(f"/api/v1/lists/{found['id']}/editions", headers=mine)
    await client.post(f"/api/v1/lists/{edition.json()['id']}/publish", headers=mine)

    for path in (
        "reading-one",
        "reading-one?edition=1",
        "reading-one.rss",
        "reading-one.json",
        "reading-one.md",
        "reading-one.png",
    ):
        response = await client.get(f"/{path}", headers=HTML)
        assert (response.status_code, response.headers.get("x-robots-tag")) == (
            200,
            "noindex",
        ), path
    unchanged = await client.get(
        "/reading-one.rss",
        headers={"If-None-Match": (await client.get("/reading-one.rss")).headers["etag"]},
    )
    assert (unchanged.status_code, unchanged.headers.get("x-robots-tag")) == (304, "noindex")
    public = await client.get("/api/v1/public/lists/reading-one")
    assert public.headers.get("x-robots-tag") == "noindex"
    page = (await client.get("/reading-one", headers=HTML)).text
    assert '<meta name="robots" content="noindex">' in page
    outgoing = re.findall(r'<a class="list-page-link"[^>]*rel="([^"]*)"', page)
    assert outgoing
    assert all({"nofollow", "ugc"} <= set(rel.split()) for rel in outgoing)


async def test_the_list_of_a_person_is_indexed_as_before(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    await published(client, await _key(rt, ada), "reading-two", URL)

    page = await client.get("/reading-two", headers=HTML)

    assert "x-robots-tag" not in page.headers
    assert '<meta name="robots" content="index, follow">' in page.text
    for path in ("reading-two.rss", "reading-two.png"):
        assert "x-robots-tag" not in (await client.get(f"/{path}")).headers
