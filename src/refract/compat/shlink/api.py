"""Shlink's REST API at `/rest/v1` to `/rest/v3`, which all give the same answers."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from refract.compat.dialect import Dialect, Operation
from refract.compat.pagination import make_json_response
from refract.compat.request import DialectRequest
from refract.compat.shlink import short_urls, tags, visits
from refract.compat.shlink.errors import DomainRedirectsNotSupported, MercureNotConfigured
from refract.compat.shlink.problems import make_problem
from refract.compat.shlink.shapes import SHLINK_VERSION, build_domain
from refract.compat.short_links import get_public_host
from refract.core.errors import RefractError
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.models import Scope
from refract.web.health import HealthEndpoints

_READ, _WRITE = Scope.READ, Scope.WRITE
_CODE = "/short-urls/{code}"


async def read_health(request: DialectRequest) -> Response:
    health: HealthEndpoints = request.app.state.vitals
    status, _ = await health.check_readiness()
    about = {
        "status": "pass" if status == 200 else "fail",
        "version": SHLINK_VERSION,
        "links": {"about": "https://shlink.io", "project": request.rt.settings.public_url},
    }
    return make_json_response(about, status, "application/health+json")


async def list_domains(request: DialectRequest) -> Response:
    """List the default domain, and those on which the caller may create links."""
    caller = DomainCaller(request.caller.user.id, request.caller.is_admin)
    async with request.rt.db.read() as session:
        others = await list_usable_domains(session, caller)
    nowhere = dict.fromkeys(("baseUrlRedirect", "regular404Redirect", "invalidShortUrlRedirect"))
    default: dict[str, Any] = {
        "domain": get_public_host(request.rt),
        "isDefault": True,
        "redirects": nowhere,
    }
    domains = [default, *map(build_domain, others)]
    return make_json_response({"domains": {"data": domains, "defaultRedirects": nowhere}})


async def edit_domain_redirects(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise DomainRedirectsNotSupported


async def read_mercure_info(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise MercureNotConfigured


class ShlinkDialect(Dialect):
    """Shlink's REST API."""

    name = "shlink"
    roots = tuple((f"/rest{version}",) * 2 for version in ("/v3", "/v2", "/v1", ""))

    def list_operations(self) -> Sequence[Operation]:
        return (
            Operation("GET", "/health", read_health, None),
            Operation("GET", "/short-urls", short_urls.list_short_urls, _READ),
            Operation("POST", "/short-urls", short_urls.create_short_url, _WRITE),
            Operation("GET", "/short-urls/shorten", short_urls.shorten_in_one_step, _WRITE),
            Operation("GET", _CODE, short_urls.read_short_url, _READ),
            Operation("PATCH", _CODE, short_urls.edit_short_url, _WRITE),
            Operation("PUT", _CODE, short_urls.edit_short_url, _WRITE),  # of version 1
            Operation("DELETE", _CODE, short_urls.delete_short_url, _WRITE),
            Operation("GET", f"{_CODE}/visits", visits.list_short_url_visits, _READ),
            Operation("DELETE", f"{_CODE}/visits", visits.delete_visits, _WRITE),
            Operation("GET", f"{_CODE}/redirect-rules", short_urls.read_redirect_rules, _READ),
            Operation("POST", f"{_CODE}/redirect-rules", short_urls.replace_redirect_rules, _WRITE),
            Operation("GET", "/visits", visits.read_overview, _READ),
            Operation("GET", "/visits/non-orphan", visits.list_all_visits, _READ),
            Operation("GET", "/visits/orphan", visits.list_orphan_visits, _READ),
            Operation("DELETE", "/visits/orphan", visits.delete_visits, _WRITE),
            Operation("GET", "/tags", tags.list_tags, _READ),
            Operation("PUT", "/tags", tags.rename_tag, _WRITE),
            Operation("DELETE", "/tags", tags.delete_tags, _WRITE),
            Operation("GET", "/tags/stats", tags.list_tag_stats, _READ),
            Operation("GET", "/tags/{tag}/visits", visits.list_tag_visits, _READ),
            Operation("GET", "/domains", list_domains, _READ),
            Operation("PATCH", "/domains/redirects", edit_domain_redirects, _WRITE),
            Operation("GET", "/domains/{domain}/visits", visits.list_domain_visits, _READ),
            Operation("GET", "/mercure-info", read_mercure_info, _READ),
        )

    def get_key(self, request: DialectRequest) -> str | None:
        if request.path == "/short-urls/shorten" and "x-api-key" not in request.headers:
            return request.query_params.get("apiKey")
        return request.headers.get("x-api-key")

    def make_error_response(self, request: DialectRequest, error: RefractError) -> Response:
        return make_problem(request, error)
