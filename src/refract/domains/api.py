"""API of domains, for administrators; everyone signed in sees where they may create links."""

from typing import Annotated, Final

from fastapi import Path, Query, Request, Response

from refract.core.ip_addresses import is_inside
from refract.core.pagination import CursorCodec
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.domains import queries, service
from refract.domains.dependencies import Hooks, to_domain_caller
from refract.domains.errors import (
    DomainExists,
    DomainIsDefault,
    DomainNotEmpty,
    DomainNotFound,
    DomainTeamRequired,
    InvalidDomainHost,
    InvalidFallback,
)
from refract.domains.hosts import get_default_host, parse_domain_host
from refract.domains.schemas import DomainCreate, DomainOut, DomainPatch, DomainsPage
from refract.identity.dependencies import AdminCaller, ReadCaller
from refract.limits.errors import RateLimited
from refract.limits.shared_limits import SharedLimit
from refract.teams.errors import TeamNotFound
from refract.web.dependencies import (
    DEFAULT_PAGE_SIZE,
    CursorParam,
    IfMatchHeader,
    LimitParam,
    Rt,
    api_router,
    make_etag,
    parse_if_match,
)
from refract.web.health import has_proxy_headers
from refract.web.networks import client_network
from refract.web.problems import problems

router = api_router("/domains", "domains")
TLS_CHECKS_PER_MINUTE: Final = 600
_BAD_SETTINGS = (InvalidFallback, DomainTeamRequired, TeamNotFound)
HostPath = Annotated[str, Path(max_length=300, examples=["sho.rt"])]


class TlsCheckLimit(SharedLimit):
    """Questions of a reverse proxy whether it may get a certificate. Strangers cause them."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(rt, "tls", TLS_CHECKS_PER_MINUTE, per=Phrase("per minute and network"))


@router.post(
    "",
    status_code=201,
    responses=problems(InvalidDomainHost, DomainIsDefault, DomainExists, *_BAD_SETTINGS),
)
async def create_domain(
    new: DomainCreate, actor: AdminCaller, rt: Rt, hooks: Hooks, response: Response
) -> DomainOut:
    """Add a domain. It works in every process within a second."""
    host = parse_domain_host(new.host, rt.settings.public_url)
    checked = await service.check_fallbacks(rt, hooks, new)
    async with rt.db.write() as session:
        await service.create_domain(session, hooks, actor.user.id, host, checked, rt.clock.now())
        view = await queries.view_domain(session, to_domain_caller(actor), host)
    response.headers["Location"] = f"/api/v1/domains/{host}"
    return _respond(view, rt, response)


@router.get("")
async def list_domains(
    actor: ReadCaller, rt: Rt, limit: LimitParam = DEFAULT_PAGE_SIZE, cursor: CursorParam = None
) -> DomainsPage:
    """List the domains on which you may create links, or for administrators all of them."""
    async with rt.db.read() as session:
        page = await queries.load_domains_page(
            session, CursorCodec(rt.secret), to_domain_caller(actor), limit=limit, cursor=cursor
        )
    public_url = rt.settings.public_url
    return DomainsPage(
        default_domain=get_default_host(public_url),
        items=[view.to_schema(public_url) for view in page.items],
        next_cursor=page.next_cursor,
    )


@router.get(
    "/tls",
    response_class=Response,
    responses={
        200: {"description": "An active domain.", "content": {}},
        404: {"description": "Not a domain, or not asked from inside."},
        **problems(RateLimited),
    },
)
async def check_tls(
    request: Request,
    rt: Rt,
    domain: Annotated[
        str, Query(max_length=300, description="The host that a browser asks the proxy for.")
    ] = "",
) -> Response:
    """Tell a reverse proxy whether to get a certificate for a host, by the status alone.

    Only direct requests from this machine or a private network are answered.
    """
    peer = request.client.host if request.client is not None else ""
    if not is_inside(peer) or has_proxy_headers(request.headers):
        return Response(status_code=404)
    await rt.singleton(TlsCheckLimit).charge(client_network(request, rt))
    if domain.lower() == get_default_host(rt.settings.public_url):
        return Response()
    async with rt.db.read() as session:
        found = await queries.find_domain(session, domain)
    return Response(status_code=200 if found is not None and found.is_active else 404)


@router.get("/{host}", responses=problems(DomainNotFound))
async def read_domain(host: HostPath, actor: ReadCaller, rt: Rt, response: Response) -> DomainOut:
    """Return a domain on which you may create links; administrators see all."""
    async with rt.db.read() as session:
        view = await queries.view_domain(session, to_domain_caller(actor), host)
    return _respond(view, rt, response)


@router.patch("/{host}", responses=problems(DomainNotFound, *_BAD_SETTINGS))
async def change_domain(
    host: HostPath,
    changes: DomainPatch,
    actor: AdminCaller,
    rt: Rt,
    hooks: Hooks,
    response: Response,
    if_match: IfMatchHeader = None,
) -> DomainOut:
    """Change, disable or enable a domain. A disabled domain answers 421; its links are kept."""
    checked = await service.check_fallbacks(rt, hooks, changes)
    async with rt.db.write() as session:
        await service.change_domain(
            session,
            hooks,
            actor.user.id,
            host,
            checked,
            rt.clock.now(),
            versions=parse_if_match(if_match),
        )
        view = await queries.view_domain(session, to_domain_caller(actor), host)
    return _respond(view, rt, response)


@router.delete("/{host}", status_code=204, responses=problems(DomainNotFound, DomainNotEmpty))
async def delete_domain(
    host: HostPath, actor: AdminCaller, rt: Rt, hooks: Hooks, if_match: IfMatchHeader = None
) -> Response:
    """Delete a domain with no link, list or name on it."""
    async with rt.db.write() as session:
        await service.delete_domain(
            session,
            hooks,
            actor.user.id,
            host,
            rt.clock.now(),
            versions=parse_if_match(if_match),
        )
    return Response(status_code=204)


def _respond(view: queries.DomainView, rt: Runtime, response: Response) -> DomainOut:
    response.headers["ETag"] = make_etag(view.domain.version)
    return view.to_schema(rt.settings.public_url)


ROUTERS = (router,)
