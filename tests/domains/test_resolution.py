"""Names and codes per domain: who answers what under which host."""

from typing import Any

import httpx
import pytest

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.models import Link
from refract.web.static_files import static
from tests import make
from tests.client import on_sqlite
from tests.redirect.nodes import Place, open_place

HOSTS = ["", "sho.rt", "go.other.example"]


@pytest.fixture
async def links(rt: Runtime, ada: User) -> dict[str, Link]:
    """A link with the same name on every domain."""
    made = {}
    async with rt.db.write() as session:
        for host in HOSTS:
            if host:
                await make.domain(session, rt, host)
            url = f"https://{host or 'default'}.test/"
            made[host] = await make.link(session, rt, ada, url, name="Plan_A", domain=host)
    return made


async def follow(place: Place, host: str, path: str, **more: Any) -> httpx.Response:
    return await place.get(path, headers={"Host": host or "go.test", **more})


async def test_the_same_name_leads_elsewhere_on_each_domain(
    rt: Runtime, links: dict[str, Link]
) -> None:
    async with open_place(rt) as place:
        for _ in ("from the database", "from the cache"):
            for host in HOSTS:
                answer = await follow(place, host, "/plan-a")
                assert answer.headers["location"] == f"https://{host or 'default'}.test/"
                missing = await follow(place, host, "/plan-b")
                assert missing.status_code == 404
        assert place.cached == {b"/plan-a", b"sho.rt/plan-a", b"go.other.example/plan-a"}
    assert [link.domain for link in links.values()] == [None, "sho.rt", "go.other.example"]


async def test_a_code_leads_to_its_link_on_its_domain_only(
    rt: Runtime, links: dict[str, Link]
) -> None:
    async with open_place(rt) as place:
        for home, link in links.items():
            for host in HOSTS:
                expected = 302 if host == home else 404
                assert (await follow(place, host, f"/{link.code}")).status_code == expected


async def test_a_link_has_names_on_other_domains(
    rt: Runtime, ada: User, links: dict[str, Link]
) -> None:
    number = links["sho.rt"].id
    async with rt.db.write() as session:
        for host in (None, "go.other.example"):
            await service.add_name(
                session, make.space(rt), make.who(ada), number, "Extra", host=host
            )
    async with open_place(rt) as place:
        assert (await follow(place, "", "/extra")).headers["location"] == "https://sho.rt.test/"
        assert (await follow(place, "go.other.example", "/EXTRA")).status_code == 302
        assert (await follow(place, "sho.rt", "/extra")).status_code == 404
        await follow(place, "sho.rt", "/plan-a")

        async with rt.db.write() as session:
            await service.release_name(
                session, make.space(rt), make.who(ada), number, "extra", host="go.other.example"
            )

        assert (await follow(place, "go.other.example", "/extra")).status_code == 404
        assert (await follow(place, "", "/extra")).status_code == 302


async def test_random_codes_are_on_the_domain_of_their_link(rt: Runtime, ada: User) -> None:
    rt.settings = rt.settings.model_copy(update={"codes": "random"})
    async with rt.db.write() as session:
        await make.domain(session, rt)
        link = await make.link(session, rt, ada, domain="sho.rt")
    assert link.random_code == link.code
    async with open_place(rt) as place:
        assert (await follow(place, "sho.rt", f"/{link.code}")).status_code == 302
        assert (await follow(place, "", f"/{link.code}")).status_code == 404


@on_sqlite
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/robots.txt", 200),
        ("/favicon.ico", 200),
        ("/.well-known/gpc.json", 200),
        ("/health", 200),
        (static("icon.svg"), 200),
        ("/api/v1/links", 404),
        ("/app/links", 404),
        ("/auth/sign-in", 404),
        ("/ready", 404),
        ("/plan-a+", 200),
        ("/plan-a.qr", 200),
    ],
)
async def test_what_another_domain_answers(
    app: WebNode, client: httpx.AsyncClient, links: dict[str, Link], path: str, status: int
) -> None:
    del links
    assert app.engine is not None
    assert await app.engine.invalidator.poll()
    assert (await client.get(path, headers={"Host": "sho.rt"})).status_code == status
    if path != "/health":
        elsewhere = await client.get(path, headers={"Host": "elsewhere.test"})
        assert elsewhere.status_code == (200 if path == "/ready" else 421)


@on_sqlite
async def test_words_of_the_app_are_names_on_other_domains(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt)
        await make.link(session, rt, ada, names=["api", "app", "login"], domain="sho.rt")
    async with open_place(rt) as place, place.on_the_wire() as client:
        for path in ("/api", "/app", "/login"):
            for _ in range(2):
                answer = await client.get(path, headers={"Host": "sho.rt"})
                assert answer.status_code == 302, path


@on_sqlite
async def test_what_is_not_found_leads_where_the_domain_says(rt: Runtime, ada: User) -> None:
    given: dict[str, Any] = {
        "root_destination": "https://home.test/",
        "unknown_destination": "https://unknown.test/",
        "gone_destination": "https://gone.test/",
    }
    async with rt.db.write() as session:
        await make.domain(session, rt, **given)
        link = await make.link(session, rt, ada, name="off", domain="sho.rt")
        await service.disable_link(session, make.who(ada), link.id, rt.clock.now())
    async with open_place(rt) as place:
        for path, url in (
            ("/", "home"),
            ("/none", "unknown"),
            ("/off", "gone"),
            ("/a/b", "unknown"),
        ):
            answer = await follow(place, "sho.rt", path)
            assert answer.headers["location"] == f"https://{url}.test/"
            assert answer.headers["cache-control"].startswith("private")
        assert (await follow(place, "", "/none")).status_code == 404


@on_sqlite
async def test_a_restricted_link_is_decided_on_the_default_domain(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt)
        await make.link(session, rt, ada, name="mine", domain="sho.rt", visibility="secure")
    async with open_place(rt) as place:
        answer = await follow(place, "sho.rt", "/mine/x?y=1")
    assert answer.status_code == 302
    assert answer.headers["location"] == "http://go.test/auth/follow?link=sho.rt%2Fmine%2Fx%3Fy%3D1"


async def test_a_change_of_a_domain_reaches_other_processes(
    rt: Runtime, links: dict[str, Link]
) -> None:
    del links
    async with open_place(rt) as place:
        assert (await follow(place, "sho.rt", "/plan-a")).status_code == 302
        async with rt.db.write() as session:
            await make.disable_domain(session, rt)
            await make.domain(session, rt, "late.test")
        assert await place.engine.invalidator.poll()

        assert (await follow(place, "sho.rt", "/plan-a")).status_code == 421
        assert (await follow(place, "go.other.example", "/plan-a")).status_code == 302
        assert (await follow(place, "late.test", "/plan-a")).status_code == 404
