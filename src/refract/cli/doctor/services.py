"""What is reached by HTTP: the running server, identity providers, the model, the collector of traces."""

from urllib.parse import urlsplit

import httpx

from refract import __version__
from refract.analytics.spool_reader import has_ingester, spools
from refract.cli.doctor.findings import Finding, mind, well, wrong
from refract.cli.installation import read_address
from refract.core.address import is_loopback
from refract.core.settings import Settings

TIMEOUT_SECONDS = 5.0


async def look_at_server(settings: Settings) -> list[Finding]:
    """Ask the server that serves this data directory, if one does, and the public address."""
    root = settings.effective_spool_dir
    found: list[Finding] = []
    if settings.port and (has_ingester(root) or any(spool.live for spool in spools(root))):
        found.append(await _local(settings))
    if settings.base_url is not None and not _is_test(settings.public_url):
        found += await _public(settings)
    return found


async def _local(settings: Settings) -> Finding:
    url = _local_url(settings)
    token = settings.metrics_token
    headers = {"authorization": f"Bearer {token.get_secret_value()}"} if token else {}
    answer = await _get(f"{url}/ready", headers)
    if isinstance(answer, str):
        return mind(
            "server",
            f"A server has this data directory open, but nothing answers at {url} ({answer}).",
            "Correct REFRACT_HOST and REFRACT_PORT if they are not what it was started with; else read its log.",
        )
    version = answer.json().get("version") if answer.headers.get("content-type", "").startswith("application/json") else None
    if version is not None and version != __version__:
        return mind("server", f"The running server is version {version}, this program {__version__}.", "Reload or restart it.")
    return well("server", f"It answers at {url}.")


def _local_url(settings: Settings) -> str:
    """Return where the server on this data directory listens: as it recorded itself, or as the settings say."""
    served = read_address(settings)
    if served is not None and is_loopback(urlsplit(served.url).hostname or ""):
        return served.url
    return f"http://{_reachable(settings.host)}:{settings.port}"


async def _public(settings: Settings) -> list[Finding]:
    answer = await _get(f"{settings.public_url}/metrics", {})
    if isinstance(answer, str):
        remedy = "Look at the front, and at REFRACT_BASE_URL; or it cannot be reached from this machine, which is fine."
        return [mind("public address", f"{settings.public_url} does not answer ({answer}).", remedy)]
    if answer.status_code == 200:
        remedy = "Set REFRACT_METRICS_TOKEN, and let the front answer 404 (deploy/nginx)."
        return [wrong("metrics", f"Everybody can read {settings.public_url}/metrics.", remedy)]
    return [well("public address", f"{settings.public_url} answers, and keeps its figures to itself.")]


def _reachable(host: str) -> str:
    """Return the address at which a server that listens on `host` is reached from this machine."""
    if host in ("0.0.0.0", ""):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return "[::1]" if host == "::" else f"[{host}]" if ":" in host else host


def _is_test(url: str) -> bool:
    """Names that are reserved for documentation and tests lead nowhere."""
    return (httpx.URL(url).host or "").endswith((".test", ".invalid", ".example"))


async def look_at_issuers(settings: Settings) -> list[Finding]:
    found = []
    for name, issuer in settings.issuers.items():
        url = issuer.url.rstrip("/")
        answer = await _get(f"{url}/.well-known/openid-configuration", {})
        if isinstance(answer, str):
            remedy = "Nobody can sign in with it: correct its URL."
            found.append(wrong("issuer", f"{name} does not answer at {url} ({answer}).", remedy))
            continue
        try:
            told = str(answer.json().get("issuer", "")).rstrip("/") if answer.status_code == 200 else ""
        except ValueError:
            told = ""
        if told != url:
            found.append(wrong("issuer", f"{name} calls itself {told or 'nothing'}, not {url}.", "Write its URL exactly as it does."))
        else:
            found.append(well("issuer", f"{name} answers at {url}."))
    return found


async def look_at_model(settings: Settings) -> list[Finding]:
    if settings.model_url is None:
        return []
    key = settings.model_key
    headers = {"authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    answer = await _get(f"{settings.model_url.rstrip('/')}/models", headers)
    if isinstance(answer, str):
        remedy = "Start it, or correct REFRACT_MODEL_URL. Items are described without it meanwhile."
        return [wrong("model", f"{settings.model_url} does not answer ({answer}).", remedy)]
    if answer.status_code in (401, 403):
        return [wrong("model", f"{settings.model_url} refuses the key ({answer.status_code}).", "Correct REFRACT_MODEL_KEY.")]
    return [well("model", f"It answers at {settings.model_url}.")]


async def look_at_traces(settings: Settings) -> list[Finding]:
    if settings.otlp_url is None:
        return []
    answer = await _get(settings.otlp_url, {})  # a collector answers a GET with 404 or 405: it is there
    if isinstance(answer, str):
        remedy = "Start it, or correct REFRACT_OTLP_URL. Traces are thrown away meanwhile."
        return [wrong("traces", f"The collector {settings.otlp_url} does not answer ({answer}).", remedy)]
    return [well("traces", f"The collector answers at {settings.otlp_url}.")]


async def _get(url: str, headers: dict[str, str]) -> httpx.Response | str:
    """Return the response, or in one word why there is none."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_SECONDS) as client:
            return await client.get(url, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        return type(exc).__name__
