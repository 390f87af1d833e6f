"""Deletion erases a user's data of every feature from tables, indexes, files and logs."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient, Response
from sqlalchemy import func, select

from refract.admin.jobs import make_handlers
from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.db.types import Model
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import ApiKey, AuditEntry, BrowserSession, SigninLink, User
from refract.identity.payloads import FinishAccountDeletion
from refract.imports.models import ImportRow, ImportRun
from refract.jobs.models import Job
from refract.library.models import Item, ItemUndo, SavedPage, Suggestion, TagChange, TagRule
from refract.library.search.models import ItemSearch
from refract.links import feed
from refract.links.models import Link, LinkChange
from refract.lists.models import LinkList, ListAction, ListEntry
from refract.registry import build_worker, list_personal_data_hooks
from refract.tags.models import Tag, TagAlias
from refract.web.models import StoredResponse
from tests import make
from tests.access.identities import ISSUERS
from tests.client import by_cookie, by_key, on_sqlite
from tests.conftest import make_settings
from tests.dump import dump
from tests.identity.issuer import CLIENT, bearer, claims, publish, sign
from tests.library.http import Site, a_site

CANARY = "quixzzjkv"
HOST = f"https://{CANARY}.example.com"
OF_THEIRS = (
    ApiKey, BrowserSession, SigninLink, StoredResponse, LinkChange, LinkList, ListEntry, Item,
    SavedPage, ItemSearch, ItemUndo, Suggestion,
    Tag, TagAlias, TagChange, TagRule, ImportRun, ImportRow,
)  # fmt: skip
"""Tables that hold a word of theirs before, and are empty afterwards."""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as found:
        yield found


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    given: dict[str, Any] = {"issuers": ISSUERS, "signin_links": "on", "fetch_allow": "127.0.0.0/8"}
    return make_settings(tmp_path / "data", database_url=database, **given)


@pytest.fixture
async def rt(rt: Runtime) -> AsyncIterator[Runtime]:
    yield rt
    await rt.close()


class Canary:
    """A client with a provider's token; each POST has an Idempotency-Key, so it is stored."""

    def __init__(self, client: AsyncClient, headers: dict[str, str]) -> None:
        self._client = client
        self.headers = headers
        self._asked = 0

    async def does(
        self, method: str, path: str, *, status: tuple[int, ...] = (200, 201, 202, 204), **body: Any
    ) -> Response:
        self._asked += 1
        key = {"Idempotency-Key": f"{CANARY}-{self._asked}"} if method == "POST" else {}
        answer = await self._client.request(method, path, headers=self.headers | key, **body)
        assert answer.status_code in status, (method, path, answer.text)
        return answer

    async def makes(self, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = (await self.does("POST", path, json=body, **more)).json()
        return made


async def _arrives(rt: Runtime, client: AsyncClient, clock: ManualClock) -> Canary:
    """Create the account with a provider's token; then use a browser, keys and a profile."""
    await publish(rt)
    told = {
        "sub": CANARY,
        "aud": CLIENT,
        "email": f"{CANARY}@example.com",
        "email_verified": True,
        "name": f"{CANARY} name",
    }
    by_token = Canary(client, bearer(sign(claims(clock.now(), **told))))
    await by_token.does(
        "PATCH",
        "/api/v1/me",
        json={"nickname": f"{CANARY} nick", "bio": f"{CANARY} bio", "avatar_url": f"{HOST}/me.png"},
    )
    async with rt.db.write() as session:
        user = (await session.scalars(select(User).where(User.subject == CANARY))).one()
        cookie = await make.cookie(session, rt, user)
        await make.signin_link(session, rt, user)
    browser = Canary(client, by_cookie(rt, cookie) | {"User-Agent": f"Browser/{CANARY}"})
    made = [
        await browser.makes("/api/v1/keys", {"name": f"{CANARY} {name}"})
        for name in ("first", "second")
    ]
    await browser.does("DELETE", f"/api/v1/keys/{made[0]['id']}")
    return browser


async def _links(who: Canary) -> list[str]:
    rule = {"destination": f"{HOST}/rule", "conditions": {"referrers": [f"{CANARY}.example"]}}
    wish = {
        "destination": f"{HOST}/page",
        "title": f"{CANARY} title",
        "notes": f"{CANARY} notes",
        "expires_at": "2099-01-01T00:00:00Z",
        "expired_destination": f"{HOST}/over",
        "before_destination": f"{HOST}/soon",
        "rules": [rule],
        "preview_card": {"title": f"{CANARY} card", "image_url": f"{HOST}/card.png"},
        "password": f"{CANARY} password",
    }
    made = [
        await who.makes("/api/v1/links", wish | {"names": [name]})
        for name in ("alone", "also-alone")
    ]
    for link in made:
        await who.does("PATCH", f"/api/v1/links/{link['id']}", json={"title": f"{CANARY} again"})
    await who.does("GET", "/api/v1/links", params={"q": CANARY})
    return [link["id"] for link in made]


async def _lists(who: Canary, site: Site) -> None:
    """A draft, one that is published under a name of theirs, and one that they deleted again."""
    site.pages[f"/{CANARY}"] = f"<title>{CANARY} entry</title>"
    for slug in (None, f"{CANARY}-list", f"{CANARY}-gone"):
        one = await who.makes(
            "/api/v1/lists", {"title": f"{CANARY} list", "description": f"{CANARY} about"}
        )
        path = f"/api/v1/lists/{one['id']}"
        entry = await who.makes(f"{path}/entries", {"url": f"{site.server.url}/{CANARY}"})
        assert entry
        if slug is not None:
            await who.makes(f"{path}/slug", {"slug": slug})
            await who.does("POST", f"{path}/publish")
        if slug is not None and "gone" in slug:
            await who.does("DELETE", path)


async def _library(rt: Runtime, who: Canary, site: Site) -> None:
    """Save notes, an article, suggestions, merged tags, rules and a discarded item."""
    page = (
        f"<title>{CANARY} page</title><p>{CANARY} said that {CANARY} is here, and that is all there"
        " is to be said about it.</p>"
    )
    site.pages["/saved"] = page.replace("<p>", "<article><p>").replace("</p>", "</p></article>")
    await who.does(
        "PUT",
        "/api/v1/me/tag-rules",
        json={"items": [{"pattern": "127.0.0.1", "tags": [f"{CANARY} rule"]}]},
    )
    article = await who.makes("/api/v1/items", {"text": f"{site.server.url}/saved"})
    unreachable = await who.makes("/api/v1/items", {"text": f"http://127.0.0.1:1/{CANARY}"})
    note = await who.makes(
        "/api/v1/items",
        {
            "text": f"{CANARY} thought",
            "enrich": False,
            "new_tags": [f"{CANARY} one", f"{CANARY} two"],
        },
    )
    await build_worker(rt).run_due_jobs()
    await who.does("PATCH", f"/api/v1/items/{article['id']}", json={"title": f"{CANARY} title"})
    await who.makes(f"/api/v1/items/{article['id']}/confirm", {"new_tags": [f"{CANARY} three"]})
    await who.does("DELETE", f"/api/v1/items/{unreachable['id']}")
    tags = {
        tag["name"]: tag["id"]
        for tag in (await who.does("GET", "/api/v1/tags", params={"scope": "personal"})).json()[
            "items"
        ]
    }
    await who.makes(
        "/api/v1/tags/merge", {"target": tags[f"{CANARY} one"], "sources": [tags[f"{CANARY} two"]]}
    )
    await who.does("GET", "/api/v1/library", params={"q": CANARY})
    await who.does("GET", f"/api/v1/items/{note['id']}/similar")


async def _imports(rt: Runtime, who: Canary) -> None:
    """One that is done, and one whose rows still wait: the file, as good as it was."""
    for number in range(2):
        rows = [
            {"text": f"{CANARY} row {number}"},
            {"text": f"{HOST}/row/{number}"},
            {"url": f"{CANARY} nonsense"},
        ]
        await who.does(
            "POST",
            "/api/v1/library/imports",
            params={"name": f"{CANARY}.json"},
            content=json.dumps(rows),
        )
        if not number:
            await build_worker(rt).run_due_jobs()


async def _takes_it_along(who: Canary, link_id: str) -> None:
    """What was given out was not kept anywhere meanwhile."""
    assert CANARY in (await who.does("GET", "/api/v1/me/export")).text
    for format_ in ("json", "html"):
        assert (
            CANARY
            in (await who.does("GET", "/api/v1/library/export", params={"format": format_})).text
        )
    for format_ in ("csv", "parquet"):
        await who.does("GET", f"/api/v1/links/{link_id}/stats/export", params={"format": format_})


async def _rows(rt: Runtime, model: type[Model]) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


def _files(rt: Runtime) -> str:
    """Every file there is, but the database itself."""
    kept = [
        file
        for file in rt.settings.data_dir.parent.rglob("*")
        if file.is_file() and not file.name.startswith("refract.db")
    ]
    return "\n".join(f"{file.name} {file.read_bytes().decode('latin-1')}" for file in kept)


async def test_not_a_word_is_left_in_any_feature(
    rt: Runtime,
    app: WebNode,
    client: AsyncClient,
    clock: ManualClock,
    site: Site,
    capsys: pytest.CaptureFixture[str],
) -> None:
    who = await _arrives(rt, client, clock)
    made = await _links(who)
    await _lists(who, site)
    await _library(rt, who, site)
    await _imports(rt, who)
    await _takes_it_along(who, made[0])
    await client.get(
        "/alone",
        headers=who.headers | {"User-Agent": "Mozilla/5.0", "Referer": "https://example.org/"},
    )
    full = {model.__tablename__: await _rows(rt, model) for model in OF_THEIRS}
    assert min(full.values()) > 0, (
        f"the canary left no trace in {[name for name, number in full.items() if not number]}"
    )
    assert CANARY in await dump(rt)

    assert (await client.delete("/api/v1/me", headers=who.headers)).status_code == 204
    await build_worker(rt).run_due_jobs()
    clock.advance(600)  # what failed is tried again, and finds nothing to do
    await build_worker(rt).run_due_jobs()

    async with (
        rt.db.write() as session
    ):  # changes of names are dropped with a later change, minutes after by the wall clock
        await make.link(session, rt, await make.person(session, rt, "bob"), name="of-bob")
    async with rt.db.write() as session:
        await feed.trim_feed(session, datetime.now(UTC) + timedelta(days=1), 1000)

    assert {model.__tablename__: await _rows(rt, model) for model in OF_THEIRS} == dict.fromkeys(
        full, 0
    )
    assert [line[:300] for line in (await dump(rt)).splitlines() if CANARY in line] == []
    assert app.engine is not None
    assert CANARY not in _files(rt)
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err
    assert await _rows(rt, ListAction) > 0, "the log of what was published stays, without the names"
    async with rt.db.read() as session:
        said = list(
            await session.scalars(select(AuditEntry.action).where(AuditEntry.detail.is_(None)))
        )
        hashes = set(await session.scalars(select(Link.password_hash)))
        waiting = list(
            await session.scalars(
                select(Job.status).where(
                    Job.status.in_(["PENDING", "FAILED", "DEAD", "IN_PROGRESS"])
                )
            )
        )
    assert {"account.made", "key.created", "account.deleted"} <= set(said), (
        "that something was done stays, and not what"
    )
    assert waiting == []
    assert hashes == {None}


@on_sqlite
async def test_what_a_late_request_wrote_goes_too(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    """A request authenticated just before the deletion may write just after; that is erased too."""
    async with rt.db.write() as session:
        ada, bob = await make.person(session, rt, "ada"), await make.person(session, rt, "bob")
        key = by_key(await make.key(session, rt, ada, *make.OWN))
        await make.link(session, rt, bob, name="kept")
    assert (await client.delete("/api/v1/me", headers=key)).status_code == 204
    async with rt.db.write() as session:
        late = await make.link(session, rt, ada, name="late", title=CANARY)
        await make.key(session, rt, ada)
        await make.cookie(session, rt, ada)
    assert (await client.get("/late")).status_code == 302
    clock.advance(180)
    await build_worker(rt).run_due_jobs()

    async with rt.db.read() as session:
        row = await session.get_one(Link, late.id)
    assert (row.status, row.title, row.destination) == ("deleted", None, "https://erased.invalid/")
    assert [await _rows(rt, model) for model in (ApiKey, BrowserSession)] == [0, 0]
    assert (await client.get("/kept")).status_code == 302
    assert CANARY not in await dump(rt)


@on_sqlite
async def test_looking_again_does_nothing_to_who_is_still_there(rt: Runtime) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        await make.key(session, rt, ada)
        held = await make.link(session, rt, ada, name="hers")
    (finish_account_deletion,) = make_handlers(list_personal_data_hooks())
    await finish_account_deletion(rt, FinishAccountDeletion(user_id=ada.id))
    await finish_account_deletion(rt, FinishAccountDeletion(user_id=1))

    async with rt.db.read() as session:
        assert (await session.get_one(Link, held.id)).status == "active"
    assert await _rows(rt, ApiKey) == 1
