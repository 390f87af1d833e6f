"""Public lists in frames: embedded on other sites, and beside the builder."""

from dataclasses import replace

from httpx import AsyncClient

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, by_key, client_of, on_sqlite
from tests.lists.clients import creator, new_list, published

HTML = {"Accept": "text/html"}


@on_sqlite
async def test_an_embedded_list_has_no_scripts_forms_or_cookies(client: AsyncClient) -> None:
    await published(client, creator(), "reading", "https://example.com/a", title="A <b> list")

    response = await client.get("/reading?embed", headers=HTML)

    policy = response.headers["content-security-policy"]
    assert response.status_code == 200
    assert "frame-ancestors *" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "form-action 'none'" in policy
    assert "x-frame-options" not in response.headers
    assert "set-cookie" not in response.headers
    assert response.headers["x-robots-tag"] == "noindex"
    assert not [tag for tag in ("<script", "<form", "<input", "<button") if tag in response.text]
    assert 'href="/reading/1"' in response.text
    assert 'target="_blank"' in response.text
    assert "A &lt;b&gt; list" in response.text


@on_sqlite
async def test_only_the_embedded_page_may_be_framed(client: AsyncClient) -> None:
    me = creator()
    made = await published(client, me, "reading")
    draft = await new_list(client, me, "https://example.com/a")

    for path in ("/reading", "/reading?edition=1", f"/app/lists/{made['id']}"):
        response = await client.get(path, headers=me | HTML)
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"], path
        assert response.headers["x-frame-options"] == "DENY", path
    builder = await client.get(f"/app/lists/{draft['id']}", headers=me | HTML)
    framed = await client.get(f"/app/lists/{draft['id']}/preview?frame", headers=me | HTML)
    whole = await client.get(f"/app/lists/{draft['id']}/preview", headers=me | HTML)
    assert "frame-src 'self'" in builder.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in builder.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in framed.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in whole.headers["content-security-policy"]


@on_sqlite
async def test_an_embedded_page_is_the_same_for_its_owner(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
        session_cookie = await make.cookie(session, rt, ada)
    await published(client, key, "reading")
    owner = by_cookie(rt, session_cookie)

    assert "Manage" in (await client.get("/reading", headers=owner | HTML)).text
    assert (await client.get("/reading?embed", headers=owner | HTML)).text == (
        await client.get("/reading?embed", headers=HTML)
    ).text


@on_sqlite
async def test_a_public_list_offers_no_sign_in_to_somebody_signed_in(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    await published(client, creator(), "reading")
    async with rt.db.write() as session:
        reader = by_cookie(rt, await make.cookie(session, rt, ada))
    signed_in = (await client.get("/reading", headers=reader | HTML)).text
    stranger = (await client.get("/reading", headers=HTML)).text
    assert 'href="/auth/sign-in"' in stranger
    assert 'href="/auth/sign-in"' not in signed_in
    assert "Go to Refract" in signed_in


@on_sqlite
async def test_embedding_can_be_turned_off(client: AsyncClient, rt: Runtime) -> None:
    me = creator()
    made = await published(client, me, "reading")
    page = f"/app/lists/{made['id']}"
    assert "reading?embed" in (await client.get(page, headers=me | HTML)).text
    closed = replace(rt, settings=rt.settings.model_copy(update={"list_embeds": False}))

    async with client_of(WebNode(closed)) as other:
        embedded = await other.get("/reading?embed", headers=HTML)
        shown = await other.get(page, headers=me | HTML)

    assert "frame-ancestors 'none'" in embedded.headers["content-security-policy"]
    assert "reading?embed" not in shown.text
