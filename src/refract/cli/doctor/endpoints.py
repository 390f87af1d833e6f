"""Checks over HTTP: the running server, identity providers, the model, the trace collector."""

from urllib.parse import urlsplit

import httpx

from refract import __version__
from refract.cli.doctor.findings import DoctorFinding, report_error, report_ok, report_warning
from refract.clicks.spool.reader import has_ingester, list_spools
from refract.core.errors import ConfigurationError
from refract.core.ip_addresses import is_loopback
from refract.core.settings.loader import check_extras
from refract.core.settings.model import Settings
from refract.server.installation import read_address

REQUEST_TIMEOUT = 5.0


async def check_server(settings: Settings) -> list[DoctorFinding]:
    """Check the server on this data directory, if one runs, and the public URL."""
    root = settings.effective_spool_dir
    found: list[DoctorFinding] = []
    if settings.port and (has_ingester(root) or any(spool.is_live for spool in list_spools(root))):
        found.append(await _check_local_server(settings))
    if settings.base_url is not None and not is_test_url(settings.public_url):
        found += await _check_public_address(settings)
    return found


async def _check_local_server(settings: Settings) -> DoctorFinding:
    url = get_local_url(settings)
    token = settings.metrics_token
    headers = {"authorization": f"Bearer {token.get_secret_value()}"} if token else {}
    response = await fetch_url(f"{url}/ready", headers)
    if isinstance(response, str):
        return report_warning(
            "server",
            f"A server uses this data directory, but {url} doesn't respond ({response}).",
            "Check that REFRACT_HOST and REFRACT_PORT are those it was started with, and read its"
            " log.",
        )
    version = (
        response.json().get("version")
        if response.headers.get("content-type", "").startswith("application/json")
        else None
    )
    if version is not None and version != __version__:
        return report_warning(
            "server",
            f"The running server is version {version}, this program is {__version__}.",
            "Reload or restart it.",
        )
    return report_ok("server", f"Responds at {url}.")


def get_local_url(settings: Settings) -> str:
    """Return the local URL of the server on this data directory, as recorded or configured."""
    served = read_address(settings)
    if served is not None and is_loopback(urlsplit(served.url).hostname or ""):
        return served.url
    return f"http://{_get_reachable_host(settings.host)}:{settings.port}"


async def _check_public_address(settings: Settings) -> list[DoctorFinding]:
    response = await fetch_url(f"{settings.public_url}/metrics", {})
    if isinstance(response, str):
        remedy = (
            "Check the reverse proxy and REFRACT_BASE_URL. Ignore this if the URL can't be reached"
            " from this machine."
        )
        return [
            report_warning(
                "public address", f"{settings.public_url} doesn't respond ({response}).", remedy
            )
        ]
    if response.status_code == 200:
        remedy = "Set REFRACT_METRICS_TOKEN, and return 404 from the reverse proxy (deploy/nginx)."
        return [report_error("metrics", f"Anyone can read {settings.public_url}/metrics.", remedy)]
    return [
        report_ok(
            "public address", f"{settings.public_url} responds, and its metrics are not public."
        )
    ]


def _get_reachable_host(host: str) -> str:
    """Return the address at which a server that listens on `host` is reached from this machine."""
    if host in ("0.0.0.0", ""):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return "[::1]" if host == "::" else f"[{host}]" if ":" in host else host


def is_test_url(url: str) -> bool:
    """Return whether the host name is reserved for documentation and tests."""
    return (httpx.URL(url).host or "").endswith((".test", ".invalid", ".example"))


async def check_issuers(settings: Settings) -> list[DoctorFinding]:
    found = []
    for name, issuer in settings.issuers.items():
        url = issuer.url.rstrip("/")
        response = await fetch_url(f"{url}/.well-known/openid-configuration", {})
        if isinstance(response, str):
            remedy = "Correct its URL. No one can sign in with it now."
            found.append(
                report_error("issuer", f"{name} doesn't respond at {url} ({response}).", remedy)
            )
            continue
        try:
            reported = (
                str(response.json().get("issuer", "")).rstrip("/")
                if response.status_code == 200
                else ""
            )
        except ValueError:
            reported = ""
        if reported != url:
            found.append(
                report_error(
                    "issuer",
                    f"{name} reports the issuer {reported or '(none)'}, not {url}.",
                    "Set its URL exactly as it reports it.",
                )
            )
        else:
            found.append(report_ok("issuer", f"{name} responds at {url}."))
    return found


async def check_model(settings: Settings) -> list[DoctorFinding]:
    if settings.model_url is None:
        return []
    key = settings.model_key
    headers = {"authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    response = await fetch_url(f"{settings.model_url.rstrip('/')}/models", headers)
    if isinstance(response, str):
        remedy = "Start it, or correct REFRACT_MODEL_URL. Built-in rules are used until then."
        return [
            report_error("model", f"{settings.model_url} doesn't respond ({response}).", remedy)
        ]
    if response.status_code in (401, 403):
        return [
            report_error(
                "model",
                f"{settings.model_url} rejected the key ({response.status_code}).",
                "Correct REFRACT_MODEL_KEY.",
            )
        ]
    return [report_ok("model", f"Responds at {settings.model_url}.")]


async def check_trace_collector(settings: Settings) -> list[DoctorFinding]:
    """Check the OpenTelemetry SDK and the collector, if traces are configured."""
    if settings.otlp_url is None:
        return []
    try:
        check_extras(settings)
    except ConfigurationError as exc:
        return [report_error("traces", str(exc.facts["problem"]), str(exc.facts["remedy"]))]
    response = await fetch_url(settings.otlp_url, {})  # a collector responds to GET with 404 or 405
    if isinstance(response, str):
        remedy = "Start it, or correct REFRACT_OTLP_URL. Traces are dropped until then."
        return [
            report_error(
                "traces", f"The collector {settings.otlp_url} doesn't respond ({response}).", remedy
            )
        ]
    return [report_ok("traces", f"The collector responds at {settings.otlp_url}.")]


async def fetch_url(url: str, headers: dict[str, str]) -> httpx.Response | str:
    """Return the response, or the name of the error."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=REQUEST_TIMEOUT) as client:
            return await client.get(url, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        return type(exc).__name__
