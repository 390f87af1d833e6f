"""What is reached by HTTP: the running server, identity providers, the model, the collector of traces."""

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
    """Ask the server that serves this data directory, if one does, and the public address."""
    root = settings.effective_spool_dir
    found: list[DoctorFinding] = []
    if settings.port and (has_ingester(root) or any(spool.is_live for spool in list_spools(root))):
        found.append(await _check_local_server(settings))
    if settings.base_url is not None and not _is_test_url(settings.public_url):
        found += await _check_public_address(settings)
    return found


async def _check_local_server(settings: Settings) -> DoctorFinding:
    url = _get_local_url(settings)
    token = settings.metrics_token
    headers = {"authorization": f"Bearer {token.get_secret_value()}"} if token else {}
    answer = await _fetch_url(f"{url}/ready", headers)
    if isinstance(answer, str):
        return report_warning(
            "server",
            f"A server has this data directory open, but nothing answers at {url} ({answer}).",
            "Correct REFRACT_HOST and REFRACT_PORT if they are not what it was started with; else"
            " read its log.",
        )
    version = (
        answer.json().get("version")
        if answer.headers.get("content-type", "").startswith("application/json")
        else None
    )
    if version is not None and version != __version__:
        return report_warning(
            "server",
            f"The running server is version {version}, this program {__version__}.",
            "Reload or restart it.",
        )
    return report_ok("server", f"It answers at {url}.")


def _get_local_url(settings: Settings) -> str:
    """Return where the server on this data directory listens: as it recorded itself, or as the settings say."""
    served = read_address(settings)
    if served is not None and is_loopback(urlsplit(served.url).hostname or ""):
        return served.url
    return f"http://{_get_reachable_host(settings.host)}:{settings.port}"


async def _check_public_address(settings: Settings) -> list[DoctorFinding]:
    answer = await _fetch_url(f"{settings.public_url}/metrics", {})
    if isinstance(answer, str):
        remedy = (
            "Look at the front, and at REFRACT_BASE_URL; or it cannot be reached from this machine,"
            " which is fine."
        )
        return [
            report_warning(
                "public address", f"{settings.public_url} does not answer ({answer}).", remedy
            )
        ]
    if answer.status_code == 200:
        remedy = "Set REFRACT_METRICS_TOKEN, and let the front answer 404 (deploy/nginx)."
        return [
            report_error("metrics", f"Everybody can read {settings.public_url}/metrics.", remedy)
        ]
    return [
        report_ok(
            "public address", f"{settings.public_url} answers, and keeps its figures to itself."
        )
    ]


def _get_reachable_host(host: str) -> str:
    """Return the address at which a server that listens on `host` is reached from this machine."""
    if host in ("0.0.0.0", ""):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return "[::1]" if host == "::" else f"[{host}]" if ":" in host else host


def _is_test_url(url: str) -> bool:
    """Names that are reserved for documentation and tests lead nowhere."""
    return (httpx.URL(url).host or "").endswith((".test", ".invalid", ".example"))


async def check_issuers(settings: Settings) -> list[DoctorFinding]:
    found = []
    for name, issuer in settings.issuers.items():
        url = issuer.url.rstrip("/")
        answer = await _fetch_url(f"{url}/.well-known/openid-configuration", {})
        if isinstance(answer, str):
            remedy = "Nobody can sign in with it: correct its URL."
            found.append(
                report_error("issuer", f"{name} does not answer at {url} ({answer}).", remedy)
            )
            continue
        try:
            told = (
                str(answer.json().get("issuer", "")).rstrip("/")
                if answer.status_code == 200
                else ""
            )
        except ValueError:
            told = ""
        if told != url:
            found.append(
                report_error(
                    "issuer",
                    f"{name} calls itself {told or 'nothing'}, not {url}.",
                    "Write its URL exactly as it does.",
                )
            )
        else:
            found.append(report_ok("issuer", f"{name} answers at {url}."))
    return found


async def check_model(settings: Settings) -> list[DoctorFinding]:
    if settings.model_url is None:
        return []
    key = settings.model_key
    headers = {"authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    answer = await _fetch_url(f"{settings.model_url.rstrip('/')}/models", headers)
    if isinstance(answer, str):
        remedy = "Start it, or correct REFRACT_MODEL_URL. Items are described without it meanwhile."
        return [report_error("model", f"{settings.model_url} does not answer ({answer}).", remedy)]
    if answer.status_code in (401, 403):
        return [
            report_error(
                "model",
                f"{settings.model_url} refuses the key ({answer.status_code}).",
                "Correct REFRACT_MODEL_KEY.",
            )
        ]
    return [report_ok("model", f"It answers at {settings.model_url}.")]


async def check_trace_collector(settings: Settings) -> list[DoctorFinding]:
    """Look for the OpenTelemetry SDK and the collector, if traces are configured."""
    if settings.otlp_url is None:
        return []
    try:
        check_extras(settings)
    except ConfigurationError as exc:
        return [report_error("traces", str(exc.facts["problem"]), str(exc.facts["remedy"]))]
    answer = await _fetch_url(
        settings.otlp_url, {}
    )  # a collector answers a GET with 404 or 405: it is there
    if isinstance(answer, str):
        remedy = "Start it, or correct REFRACT_OTLP_URL. Traces are thrown away meanwhile."
        return [
            report_error(
                "traces", f"The collector {settings.otlp_url} does not answer ({answer}).", remedy
            )
        ]
    return [report_ok("traces", f"The collector answers at {settings.otlp_url}.")]


async def _fetch_url(url: str, headers: dict[str, str]) -> httpx.Response | str:
    """Return the response, or in one word why there is none."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=REQUEST_TIMEOUT) as client:
            return await client.get(url, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        return type(exc).__name__
