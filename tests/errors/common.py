"""Provocations of every operation, one for each mechanism."""

from contextlib import suppress
from datetime import timedelta

from refract.core.secrets import hash_credential
from refract.limits.errors import RateLimited
from refract.web.models import StoredResponse
from refract.web.networks import open_share
from tests import make
from tests.access.identities import Who
from tests.access.objects import absent_path, parameters_of
from tests.client import by_cookie
from tests.errors.provoking import Provocation
from tests.errors.site import PEER, Asking, unique

COMMON: list[Provocation] = []
BODIES = ("POST", "PUT", "PATCH")


def common(provocation: Provocation) -> Provocation:
    COMMON.append(provocation)
    return provocation


@common
async def url_that_cannot_be_read(asking: Asking) -> None:
    await asking.ask(absent_path(asking.path), query={"x": "\0"})


@common
async def wrong_hosts(asking: Asking) -> None:
    await asking.ask(absent_path(asking.path), more={"Host": "elsewhere.example"})
    nameless = await asking.request(absent_path(asking.path))
    del nameless.headers["Host"]
    await asking.send(nameless)


@common
async def body_that_is_announced_too_large(asking: Asking) -> None:
    announced = str(asking.rt.settings.max_body_bytes + 1)
    await asking.ask(absent_path(asking.path), more={"Content-Length": announced}, content=b"")


@common
async def network_with_too_many_requests(asking: Asking) -> None:
    crowded = asking.site.with_settings(open_requests_per_network=1)
    with open_share({"client": (PEER, 1), "headers": [], "state": {}}, crowded.rt):
        await asking.ask(absent_path(asking.path), site=crowded)


@common
async def unknown_parameter(asking: Asking) -> None:
    await asking.ask(absent_path(asking.path), query={"no_such_parameter": "1"})


@common
async def wrong_credentials(asking: Asking) -> None:
    path = absent_path(asking.path)
    await asking.ask(path, headers={})
    await asking.ask(path, headers={"X-API-Key": "refract_nonsense"})
    await asking.ask(path, headers=asking.site.keys["expired"])
    await asking.ask(path, headers={}, site=asking.site.with_settings(anonymous_lists="off"))


@common
async def missing_rights(asking: Asking) -> None:
    path = absent_path(asking.path)
    if asking.scope is not None:
        await asking.ask(path, headers=asking.site.keys[f"without {asking.scope}"])
    if asking.scope == "admin":
        await asking.ask(path, headers=asking.site.keys["owner"])


@common
async def key_that_is_used_up(asking: Asking) -> None:
    usage = asking.site.app.api.state.key_usage
    with suppress(RateLimited):
        while True:
            usage.count_key(asking.site.exhausted_key)
    await asking.ask(absent_path(asking.path), headers=asking.site.keys["exhausted"])


@common
async def cookie_without_proof(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        cookie = await make.cookie(session, asking.rt, asking.caller)
    if asking.method != "GET":
        await asking.ask(
            absent_path(asking.path), headers=by_cookie(asking.rt, cookie, proven=False)
        )


@common
async def bodies_that_cannot_be_read(asking: Asking) -> None:
    if asking.method in BODIES:
        path = absent_path(asking.path)
        await asking.ask(path, content=b"{", more={"Content-Type": "application/json"})
        await asking.ask(path, content=b"{}", more={"Content-Type": "text/plain"})
        form = {"Content-Type": "multipart/form-data"}
        async with asking.rt.db.write() as session:
            cookie = await make.cookie(session, asking.rt, asking.caller)
        await asking.ask(
            path, content=b"--", headers=by_cookie(asking.rt, cookie, proven=False), more=form
        )


@common
async def foreign_cursor(asking: Asking) -> None:
    await asking.ask(query={"cursor": "nonsense"})


@common
async def wrong_versions(asking: Asking) -> None:
    if "If-Match" in asking.parameters:
        await asking.ask(more={"If-Match": "nonsense"})
        await asking.ask(more={"If-Match": '"99"'})


@common
async def idempotency_keys(asking: Asking) -> None:
    """Store keys as a first request leaves them."""
    if asking.method != "POST":
        return
    await asking.ask(more={"Idempotency-Key": "x" * 256})
    expires = asking.rt.clock.now() + timedelta(hours=1)
    for status in (200, None):
        key, actor = unique("key"), f"user:{asking.caller.id}"
        async with asking.rt.db.write() as session:
            session.add(
                StoredResponse(
                    actor=actor,
                    key=key,
                    fingerprint=hash_credential("another"),
                    expires_at=expires,
                    status=status,
                    body="",
                )
            )
        await asking.ask(more={"Idempotency-Key": key})


@common
async def key_of_a_team(asking: Asking) -> None:
    await asking.ask(absent_path(asking.path), headers=asking.world.headers[Who.TEAM_KEY])


@common
async def objects_that_are_not_there(asking: Asking) -> None:
    for parameter in parameters_of(asking.path):
        await asking.ask(await asking.target(**{parameter: asking.absent(parameter)}))


@common
async def objects_of_others(asking: Asking) -> None:
    if not parameters_of(asking.path):
        return
    for who in (Who.RECIPIENT, Who.CO_OWNER, Who.OTHER):
        await asking.ask(headers=asking.world.headers[who])
    if "link_id" in parameters_of(asking.path):
        await asking.target()  # for what stands behind the other parameters
        async with asking.rt.db.write() as session:
            public = await make.link(session, asking.rt, asking.world.owner, visibility="public")
        await asking.ask(
            await asking.target(link_id=str(public.id)), headers=asking.world.headers[Who.OTHER]
        )
