"""Export and deletion of an account."""

import json
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.app import WebNode
from refract.clicks.models import ClickEvent
from refract.clicks.spool.format import LINK_CLICK
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.account_deletion import delete_account
from refract.identity.models import User, UserStatus
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.links import service
from refract.links.enums import LinkState
from refract.links.models import Link, LinkOwner, LinkTotals
from refract.links.schemas import LinkPatch
from refract.registry import list_personal_data_hooks
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.dump import dump

CANARY = "canary7391"


async def _canary(rt: Runtime, client: AsyncClient) -> tuple[User, dict[str, str]]:
    """Somebody who left a trace wherever one can."""
    async with rt.db.write() as session:
        person = await make.person(
            session, rt, CANARY, nickname=f"{CANARY} nick", bio=f"{CANARY} bio",
            avatar_url=f"https://{CANARY}.example.com/me.png",
            display_name=f"{CANARY} name",
        )  # fmt: skip
        cookie = await make.cookie(session, rt, person)
        await make.signin_link(session, rt, person)
    browser = by_cookie(rt, cookie) | {"User-Agent": f"Browser/{CANARY}"}
    key = await client.post(
        "/api/v1/keys",
        headers=browser | {"Idempotency-Key": CANARY},
        json={"name": f"{CANARY} key", "scopes": make.OWN},
    )
    assert key.status_code == 201
    return person, by_key(key.json()["key"])


async def _link(client: AsyncClient, headers: dict[str, str], **more: Any) -> int:
    wish = {
        "destination": f"https://{CANARY}.example.com/page",
        "title": f"{CANARY} title",
        "notes": f"{CANARY} notes",
        **more,
    }
    made = await client.post(
        "/api/v1/links", headers=headers | {"Idempotency-Key": json.dumps(more)}, json=wish
    )
    assert made.status_code == 201, made.text
    edited = await client.patch(
        f"/api/v1/links/{made.json()['id']}", headers=headers, json={"title": f"{CANARY} again"}
    )
    assert edited.status_code == 200
    return int(made.json()["id"])


async def _clicks(rt: Runtime) -> list[Any]:
    async with rt.db.read() as session:
        events = [
            (event.target_id, event.place, event.at, event.bot)
            for event in await session.scalars(select(ClickEvent).order_by(ClickEvent.place))
        ]
        totals = [
            (row.link_id, row.total_clicks, row.bot_clicks)
            for row in await session.scalars(select(LinkTotals))
        ]
    return [events, sorted(totals)]


async def _click(rt: Runtime, *link_ids: int) -> None:
    async with rt.db.write() as session:
        for number, link_id in enumerate(link_ids):
            session.add(
                LinkTotals(
                    link_id=link_id, total_clicks=7, bot_clicks=2, last_clicked_at=rt.clock.now()
                )
            )
            session.add(
                ClickEvent(
                    spool_id=1,
                    segment=1,
                    place=number,
                    at=rt.clock.now(),
                    kind=LINK_CLICK,
                    target_id=link_id,
                    bot=False,
                    private=False,
                    node="n",
                    network="203.0.113.0",
                    device="desktop",
                )
            )


async def test_nothing_of_a_deleted_account_is_left(
    rt: Runtime,
    app: WebNode,
    client: AsyncClient,
    clock: ManualClock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    person, headers = await _canary(rt, client)
    alone = await _link(client, headers, names=["alone"])
    shared = await _link(client, headers, names=["shared"])
    async with rt.db.write() as session:
        bob, cleo = await make.person(session, rt, "bob"), await make.person(session, rt, "cleo")
        for second, other in enumerate((cleo, bob)):
            await service.add_owner(
                session,
                make.who(person),
                shared,
                other.email,
                clock.now() + timedelta(seconds=second),
            )
        await service.edit_link(
            session,
            make.space(rt),
            make.who(cleo),
            shared,
            LinkPatch(title="Ours", notes=None),
            None,
        )
    await _click(rt, alone, shared)
    before = await _clicks(rt)
    assert CANARY in await dump(rt)

    gone = await client.delete("/api/v1/me", headers=headers)

    assert gone.status_code == 204
    assert (await client.get("/api/v1/me", headers=headers)).status_code == 401
    async with rt.db.read() as session:
        row = await session.get_one(User, person.id)
        owners = list(await session.scalars(select(LinkOwner).where(LinkOwner.link_id == shared)))
        states = {
            link.id: link.state_at(clock.now()) for link in await session.scalars(select(Link))
        }
    assert (row.status, row.email, row.display_name, row.nickname, row.bio) == (
        UserStatus.DELETED,
        "",
        "",
        None,
        None,
    )
    assert {owner.user_id: owner.is_primary for owner in owners} == {cleo.id: True, bob.id: False}
    assert states == {alone: LinkState.DELETED, shared: LinkState.ACTIVE}
    assert (await client.get("/alone")).status_code == 410
    assert (await client.get("/shared")).status_code == 302
    assert await _clicks(rt) == before
    text = (
        (await dump(rt))
        .replace(f"https://{CANARY}.example.com/page", "")
        .replace(f"{CANARY}.example.com", "")
    )
    assert CANARY not in _without_what_the_co_owners_keep(text)
    assert app.engine is not None
    spooled = b"".join(
        file.read_bytes() for file in rt.settings.effective_spool_dir.rglob("*") if file.is_file()
    )
    assert CANARY.encode() not in spooled
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err


def _without_what_the_co_owners_keep(text: str) -> str:
    """The link that lives on has its own history, which is its new owner's."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("link_history: "))


@on_sqlite
async def test_of_somebody_who_shared_nothing_not_a_word_is_left(
    rt: Runtime, client: AsyncClient
) -> None:
    _, headers = await _canary(rt, client)
    for name in ("one", "two"):
        await _link(client, headers, names=[name])
    assert (await client.delete("/api/v1/me", headers=headers)).status_code == 204

    assert CANARY not in await dump(rt)


@on_sqlite
async def test_who_was_deleted_comes_back_as_somebody_new(rt: Runtime) -> None:
    """The pseudonym is random, so the subject is free again and nothing connects the two."""
    async with rt.db.write() as session:
        await make.admin(session, rt)
        first = await make.person(session, rt, "ada")
        await delete_account(
            session, rt, AccountDeletion(first), list_personal_data_hooks(), by=first
        )
    async with rt.db.write() as session:
        second = await make.person(session, rt, "ada")
    async with rt.db.read() as session:
        row = await session.get_one(User, first.id)

    assert second.id != first.id
    assert (row.issuer, len(row.subject)) == ("deleted", 32)


@on_sqlite
async def test_the_last_administrator_cannot_leave(rt: Runtime, client: AsyncClient) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, await make.admin(session, rt), *make.OWN))
    refused = await client.delete("/api/v1/me", headers=key)
    assert (refused.status_code, refused.json()["code"]) == (409, "LAST_ADMIN")
    async with rt.db.write() as session:
        await make.admin(session, rt, "second")

    assert (await client.delete("/api/v1/me", headers=key)).status_code == 204


@on_sqlite
async def test_a_part_that_fails_keeps_the_account_whole(rt: Runtime) -> None:
    async def breaks(*_: Any) -> None:
        raise RuntimeError("no")

    async def nothing(*_: Any) -> Any:
        for row in list[dict[str, Any]]():
            yield row

    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
    with pytest.raises(RuntimeError):
        async with rt.db.write() as session:
            await delete_account(
                session,
                rt,
                AccountDeletion(ada),
                (*list_personal_data_hooks(), PersonalDataHook("more", nothing, breaks)),
                by=ada,
            )

    async with rt.db.read() as reading:
        assert (await reading.get_one(User, ada.id)).status == UserStatus.ACTIVE


async def test_everything_mine_comes_as_one_document(rt: Runtime, client: AsyncClient) -> None:
    _, headers = await _canary(rt, client)
    for number in range(3):
        await _link(client, headers, names=[f"mine-{number}"])
    async with rt.db.write() as session:
        bob = await make.person(session, rt, "bob")
        await make.link(session, rt, bob, name="not-mine")

    answer = await client.get("/api/v1/me/export", headers=headers)

    assert answer.headers["content-disposition"] == 'attachment; filename="refract-export.json"'
    told = answer.json()
    assert list(told) == [
        "exported_at",
        "me",
        "keys",
        "sessions",
        "account_invitations",
        "audit",
        "teams",
        "links",
        "invitations",
        "utm_templates",
        "lists",
        "library",
    ]
    assert (told["me"]["subject"], told["me"]["nickname"]) == (CANARY, f"{CANARY} nick")
    assert [key["name"] for key in told["keys"]] == [f"{CANARY} key"]
    assert [link["names"] for link in told["links"]] == [["mine-0"], ["mine-1"], ["mine-2"]]
    assert headers["X-API-Key"] not in answer.text
    assert "not-mine" not in answer.text


@on_sqlite
async def test_an_export_of_nothing_is_a_whole_document_too(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, await make.person(session, rt)))

    assert (await client.get("/api/v1/me/export", headers=key)).json()["links"] == []


@on_sqlite
async def test_lists_go_along_and_go(rt: Runtime, client: AsyncClient) -> None:
    """Lists are in the export, and are deleted with the account, published or not."""
    _, headers = await _canary(rt, client)
    made = await client.post("/api/v1/lists", headers=headers, json={"title": f"{CANARY} list"})
    assert made.status_code == 201, made.text
    added = await client.post(
        f"/api/v1/lists/{made.json()['id']}/entries",
        headers=headers,
        json={"url": f"https://{CANARY}.example.com/"},
    )
    assert added.status_code in (200, 201), added.text
    (one,) = (await client.get("/api/v1/me/export", headers=headers)).json()["lists"]
    assert (one["title"], [entry["url"] for entry in one["entries"]]) == (
        f"{CANARY} list",
        [f"https://{CANARY}.example.com/"],
    )

    assert (await client.delete("/api/v1/me", headers=headers)).status_code == 204

    assert CANARY not in await dump(rt)
