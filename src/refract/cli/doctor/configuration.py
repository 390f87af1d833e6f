"""Checks of the settings. Pure, but for reading files."""

import os
from collections.abc import Iterator
from pathlib import Path

import maxminddb

from refract.cli.doctor.findings import DoctorFinding, report_error, report_ok, report_warning
from refract.core.ip_addresses import is_loopback
from refract.core.settings.model import Settings
from refract.core.settings.sources import describe_unknown_variable, find_unknown_variables
from refract.core.text import count_noun
from refract.server.installation import find_missing_installation


def check_configuration(settings: Settings, served_url: str | None = None) -> list[DoctorFinding]:
    """Check the settings. `served_url` is the URL of the server on this data directory."""
    return [
        *_check_unknown_variables(),
        *_check_address(settings, served_url),
        *_check_proxies(settings),
        *_check_shared_state(settings),
        *_check_files(settings),
        *_check_metrics(settings),
        *_check_processes(settings),
        *_check_open_issuers(settings),
    ]


def _check_unknown_variables() -> Iterator[DoctorFinding]:
    """Report variables that REFRACT_UNKNOWN_SETTINGS=warn accepts; otherwise nothing starts."""
    for name, nearest in find_unknown_variables(Settings, os.environ):
        yield report_warning(
            "settings", describe_unknown_variable(name, nearest), "Correct or remove it."
        )


def _check_address(settings: Settings, served_url: str | None) -> Iterator[DoctorFinding]:
    production = settings.environment == "production"
    if settings.base_url is None and production:
        yield report_error(
            "address",
            f"Short URLs start with {settings.public_url}, which only this machine can reach.",
            "Set REFRACT_BASE_URL to the public URL.",
        )
    elif settings.base_url is None and not is_loopback(settings.host):
        yield report_error(
            "address",
            f"The server listens on {settings.host}, but short URLs start with"
            f" {settings.public_url} and only work on this machine.",
            "Set REFRACT_BASE_URL to the public URL.",
        )
    elif production and not settings.https:
        yield report_warning(
            "address",
            f"{settings.public_url} uses HTTP: sessions and keys aren't encrypted.",
            "Use a reverse proxy with TLS (docs/how-to/run-in-production.md) and set"
            " REFRACT_BASE_URL to https://…",
        )
    else:
        url = settings.public_url if settings.base_url else served_url or settings.public_url
        yield report_ok("address", f"Short URLs start with {url}.")


def _check_open_issuers(settings: Settings) -> Iterator[DoctorFinding]:
    for name, issuer in settings.issuers.items():
        if issuer.is_open:
            yield report_warning(
                f"issuer {name}",
                f"Anyone can create an account at {issuer.display_name}, and so sign in here.",
                f"Set REFRACT_ISSUERS__{name.upper()}__DOMAINS to the allowed email domains.",
            )


def _check_proxies(settings: Settings) -> Iterator[DoctorFinding]:
    unbounded = [str(network) for network in settings.trusted_proxies if network.prefixlen == 0]
    if unbounded:
        yield report_error(
            "proxies",
            f"REFRACT_TRUSTED_PROXIES contains {unbounded[0]}: clients can forge their IP address.",
            "List only the networks of your proxies.",
        )
    elif settings.https and not settings.trusted_proxies:
        yield report_warning(
            "proxies",
            "The base URL is https, but no proxy is trusted: all visitors seem to come from the"
            " reverse proxy.",
            "Set REFRACT_TRUSTED_PROXIES to the proxy's address, such as 127.0.0.1/32.",
        )
    elif settings.trusted_proxies and not settings.base_url:
        yield report_warning(
            "proxies",
            "Proxies are trusted, but the public URL is not set.",
            "Set REFRACT_BASE_URL.",
        )
    else:
        yield report_ok(
            "proxies", f"Trusted: {count_noun(len(settings.trusted_proxies), 'network')}."
        )


def _check_shared_state(settings: Settings) -> Iterator[DoctorFinding]:
    """Check what several machines must share."""
    if settings.secret_key is None and find_missing_installation(settings) is not None:
        yield report_warning(
            "secret",
            "There's no secret key yet.",
            "refract serve creates it in the data directory.",
        )
    elif settings.dialect != "sqlite" and settings.secret_key is None:
        yield report_warning(
            "secret",
            "The secret key is in this machine's data directory. Another machine would create its"
            " own and reject forms and cursors from this one.",
            "With several machines, set REFRACT_SECRET_KEY to the same value on each.",
        )
    else:
        yield report_ok("secret", "All processes share the secret key.")
    if settings.role == "redirect" and settings.dialect == "sqlite":
        yield report_warning(
            "role",
            "A redirect node on SQLite must run on the same machine as the other nodes.",
            "For several machines, run refract move.",
        )
    issuers = getattr(settings, "issuers", {})
    if settings.environment == "production" and not issuers and settings.signin_links == "auto":
        yield report_warning(
            "sign-in",
            "No identity provider: users sign in with links from the command line.",
            "For a team, configure an issuer.",
        )


def _check_files(settings: Settings) -> Iterator[DoctorFinding]:
    for name in ("blocklist_path", "geoip_path"):
        path = getattr(settings, name, None)
        if path is None:
            continue
        variable = f"REFRACT_{name.upper()}"
        if os.access(path, os.R_OK) and path.is_file():
            yield (
                _check_geoip(path)
                if name == "geoip_path"
                else report_ok(name.removesuffix("_path"), f"{path} is readable.")
            )
        else:
            yield report_error(
                name.removesuffix("_path"),
                f"Can't read {path}.",
                f"Correct {variable}, or give this user read access.",
            )


def _check_geoip(path: Path) -> DoctorFinding:
    try:
        with maxminddb.open_database(path) as reader:
            kind = reader.metadata().database_type
    except (maxminddb.InvalidDatabaseError, OSError, ValueError) as exc:
        return report_error(
            "geoip",
            f"{path} is not an .mmdb database ({exc}).",
            "Download it again. Locations are unknown until then.",
        )
    return report_ok("geoip", f"{path} is readable ({kind}).")


def _check_metrics(settings: Settings) -> Iterator[DoctorFinding]:
    is_reachable = not is_loopback(settings.host) or bool(settings.trusted_proxies)
    if settings.metrics_token is None and is_reachable:
        yield report_warning(
            "metrics",
            "REFRACT_METRICS_TOKEN is not set: only this machine can read the metrics, and"
            " Prometheus elsewhere can't.",
            "Set it on every node, and configure Prometheus to send it.",
        )
    else:
        yield report_ok(
            "metrics",
            (
                "Protected by a token."
                if settings.metrics_token
                else "Readable on this machine only."
            ),
        )


def _check_processes(settings: Settings) -> Iterator[DoctorFinding]:
    cores = os.cpu_count() or 1
    if settings.workers > 2 * cores:
        yield report_warning(
            "processes",
            f"{settings.workers} processes on {count_noun(cores, 'core')} slow each other down.",
            f"Set REFRACT_WORKERS to {cores}.",
        )
    else:
        yield report_ok(
            "processes",
            f"{count_noun(settings.workers, 'process', 'processes')} on"
            f" {count_noun(cores, 'core')}.",
        )
