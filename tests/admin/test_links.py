"""Administrators find any link by the domain of its destination, and disable it.

The finding: a link to a look-alike host was found only by the letters its owner had typed, not by
the ASCII form that reports and block lists speak of (security review, findings 2 and 21).
"""

from httpx import AsyncClient
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from tests import make
from tests.client import by_cookie, by_key, on_sqlite


async def test_a_link_is_found_by_its_destinations_domain_in_ascii(
    client: AsyncClient, rt: Runtime, ada: User, root: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, "https://login.bücher.example/", name="evil")
        await make.link(session, rt, ada, "https://other.example/", name="fine")
        key = by_key(await make.key(session, rt, root, *make.ALL))

    for asked in ("xn--bcher-kva.example", "bücher.example", "login.xn--bcher"):
        found = (await client.get("/api/v1/admin/links", headers=key, params={"q": asked})).json()[
            "items"
        ]
        assert [link["names"] for link in found] == [["evil"]], asked


@on_sqlite
async def test_it_is_disabled_from_the_same_place(
    client: AsyncClient, rt: Runtime, ada: User, root: User
) -> None:
    async with rt.db.write() as session:
        link_id = (await make.link(session, rt, ada, "https://bücher.example/", name="evil")).id
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}
    path = "/app/admin/links?q=xn--bcher-kva.example"
    page = await client.get(path, headers=browser)
    assert f'value="{link_id}"' in page.text
    assert 'value="disable"' in page.text
    assert 'href="/app/admin/links" aria-current="page"' in page.text
    assert "ada@example.com" in page.text

    done = await client.post(
        "/app/links/bulk",
        headers=browser | {"Referer": rt.settings.public_url + path},
        data={"act": "disable", "ids": [str(link_id)]},
    )

    assert (done.status_code, done.headers["location"]) == (303, path)
    disabled = await client.get("/app/admin/links?status=disabled", headers=browser)
    assert 'value="enable"' in disabled.text
    assert "No matching links" in (await client.get(f"{path}&status=active", headers=browser)).text
    assert (await client.get("/evil")).status_code == 410
    async with rt.db.read() as session:
        lines = set(
            await session.scalars(select(AuditEntry.action).where(AuditEntry.actor_id == root.id))
        )
    assert "link.disabled" in lines
