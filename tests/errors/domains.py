"""Provocations of domains."""

from httpx import Request

from refract.domains.api import TLS_CHECKS_PER_MINUTE
from tests import make
from tests.errors.provoking import provokes, sends
from tests.errors.site import Asking, unique

_NEW_LINK, _NEW_NAME, _NEW_LIST = "POST /links", "POST /links/{link_id}/names", "POST /lists"
_DEFAULTS = "PUT /teams/{team_id}/defaults"
_DOMAINS, _DOMAIN = "/domains", "/domains/{host}"
_CHANGES = (f"POST {_DOMAINS}", f"PATCH {_DOMAIN}")
_NEW = {"host": "new.example"}

sends("INVALID_DOMAIN_HOST", f"POST {_DOMAINS}", json={"host": "no host"})
sends("DOMAIN_IS_DEFAULT", f"POST {_DOMAINS}", json={"host": "go.test"})
sends("INVALID_FALLBACK", *_CHANGES[:1], json=_NEW | {"root_destination": "ftp://example.com"})
sends("INVALID_FALLBACK", *_CHANGES[1:], json={"root_destination": "ftp://example.com"})
sends("DOMAIN_TEAM_REQUIRED", *_CHANGES[:1], json=_NEW | {"creators": "team"})
sends("TEAM_NOT_FOUND", *_CHANGES[:1], json=_NEW | {"creators": "team", "team": "nobody"})
sends("TEAM_NOT_FOUND", *_CHANGES[1:], json={"creators": "team", "team": "nobody"})
sends("DOMAIN_NOT_FOUND", "GET /names/{name}", query={"domain": "absent.example"})


async def _create_at(asking: Asking, host: str) -> None:
    """Create what the operation creates, on a domain."""
    body = {"name": unique()} if "names" in asking.path else dict(asking.row.body or {})
    await asking.ask(json=body | {"domain": host})


@provokes("DOMAIN_NOT_FOUND", _NEW_LINK, _NEW_NAME, _NEW_LIST, _DEFAULTS)
async def domain_that_is_not_there(asking: Asking) -> None:
    await _create_at(asking, "absent.example")


@provokes("DOMAIN_NOT_ALLOWED", _NEW_LINK, _NEW_NAME, _NEW_LIST, _DEFAULTS)
async def domain_of_administrators(asking: Asking) -> None:
    host = f"{unique()}.example"
    async with asking.rt.db.write() as session:
        await make.domain(session, asking.rt, host, creators="administrators")
    await _create_at(asking, host)


@provokes("DOMAIN_DISABLED", _NEW_LINK, _NEW_NAME, _NEW_LIST, _DEFAULTS)
async def domain_that_is_disabled(asking: Asking) -> None:
    host = f"{unique()}.example"
    async with asking.rt.db.write() as session:
        await make.domain(session, asking.rt, host)
        await make.disable_domain(session, asking.rt, host)
    await _create_at(asking, host)


@provokes("DOMAIN_EXISTS", f"POST {_DOMAINS}")
async def domain_that_is_there(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        await make.domain(session, asking.rt, "there.example")
    await asking.ask(json={"host": "there.example"})


@provokes("DOMAIN_TEAM_REQUIRED", f"PATCH {_DOMAIN}")
async def team_that_is_not_named(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        await make.domain(session, asking.rt, "teamless.example")
    await asking.ask("/api/v1/domains/teamless.example", json={"creators": "team"})


@provokes("DOMAIN_NOT_EMPTY", f"DELETE {_DOMAIN}")
async def domain_with_a_link(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        await make.domain(session, asking.rt, "full.example")
        link = await make.link(session, asking.rt, asking.world.owner)
        link.domain = "full.example"
    await asking.ask("/api/v1/domains/full.example")


@provokes("RATE_LIMITED", f"GET {_DOMAINS}/tls")
async def question_too_many(asking: Asking) -> None:
    """Only machines inside are counted; others get no answer anyway."""
    request: Request = await asking.request()
    for _ in range(TLS_CHECKS_PER_MINUTE + 1):
        await asking.send(request, peer="10.0.0.1")
