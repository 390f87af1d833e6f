"""Checks of domains: whether visitors can reach them."""

import asyncio
from collections.abc import Iterator, Sequence

from sqlalchemy.exc import DBAPIError

from refract import migrations
from refract.cli.doctor.endpoints import fetch_url, is_test_url
from refract.cli.doctor.findings import DoctorFinding, report_error, report_ok, report_warning
from refract.core.db.session import Database
from refract.core.errors import RefractError
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.domains.hosts import build_domain_url, get_default_host
from refract.domains.queries import list_domains
from refract.server.installation import find_missing_installation

MAX_REQUESTS = 20
"""Domains that are requested. The others are only counted."""


async def check_domains(settings: Settings) -> list[DoctorFinding]:
    """Check the settings that domains need, and request each active one."""
    hosts = await _load_hosts(settings)
    if not hosts:
        return []
    found = list(_check_settings(settings, hosts))
    if any(finding.remedy for finding in found):
        return found
    urls = [build_domain_url(settings.public_url, host) for host in hosts]
    reachable = [url for url in urls if not is_test_url(url)][:MAX_REQUESTS]
    found += [
        finding
        for finding in await asyncio.gather(*(_check_health(url) for url in reachable))
        if finding is not None
    ]
    return found or [report_ok("domains", f"{count_noun(len(hosts), 'active domain')}.")]


async def _load_hosts(settings: Settings) -> list[str]:
    """Return the hosts of active domains. What is wrong with the database is reported elsewhere."""
    if find_missing_installation(settings) is not None:
        return []
    db = Database(settings)
    try:
        if (await migrations.check_schema(db)).problem is not None:
            return []
        async with db.read() as session:
            return [domain.host for domain in await list_domains(session) if domain.is_active]
    except (RefractError, DBAPIError, OSError):
        return []
    finally:
        await db.close()


def _check_settings(settings: Settings, hosts: Sequence[str]) -> Iterator[DoctorFinding]:
    default = get_default_host(settings.public_url)
    if settings.base_url is None:
        yield report_error(
            "domains",
            f"Visitors can't reach {hosts[0]}{' and others' if len(hosts) > 1 else ''}: the public"
            " URL is not set.",
            "Set REFRACT_BASE_URL.",
        )
    if default in hosts:
        yield report_warning(
            "domains",
            f"{default} is the default domain and also another one: only the links of the default"
            " domain work there.",
            "Change REFRACT_BASE_URL, or delete the domain.",
        )


async def _check_health(url: str) -> DoctorFinding | None:
    response = await fetch_url(f"{url}/health", {})
    host = url.partition("://")[2]
    if isinstance(response, str):
        return report_warning(
            "domains",
            f"{host} doesn't respond ({response}).",
            "Check its DNS, its certificate and the reverse proxy (docs/how-to/domains.md).",
        )
    if response.status_code != 200:
        return report_warning(
            "domains",
            f"{host} responds with {response.status_code}.",
            "Check that the reverse proxy sends it here and forwards the visitor's Host.",
        )
    return None
