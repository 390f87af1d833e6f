"""Settings that do not fit together: pure."""

import os
from collections.abc import Iterator
from pathlib import Path

import maxminddb

from refract.cli.doctor.findings import DoctorFinding, report_error, report_ok, report_warning
from refract.core.ip_addresses import is_loopback
from refract.core.settings.model import Settings
from refract.core.settings.sources import describe_unknown_variable, find_unknown_variables


def check_configuration(settings: Settings, served_url: str | None = None) -> list[DoctorFinding]:
    """Examine the settings; `served_url` is the address that the server on this data directory has."""
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
    """Name what REFRACT_UNKNOWN_SETTINGS=warn lets pass; without it nothing starts."""
    for name, nearest in find_unknown_variables(Settings, os.environ):
        yield report_warning(
            "settings", describe_unknown_variable(name, nearest), "Correct or remove it."
        )


def _check_address(settings: Settings, served_url: str | None) -> Iterator[DoctorFinding]:
    production = settings.environment == "production"
    if settings.base_url is None and production:
        yield report_error(
            "address",
            f"Short URLs begin with {settings.public_url}, which nobody else can reach.",
            "Set REFRACT_BASE_URL to the public address.",
        )
    elif settings.base_url is None and not is_loopback(settings.host):
        yield report_error(
            "address",
            f"The server listens on {settings.host}, but short URLs begin with"
            f" {settings.public_url}: they work on this machine alone.",
            "Set REFRACT_BASE_URL to the address that others use.",
        )
    elif production and not settings.https:
        yield report_warning(
            "address",
            f"{settings.public_url} is not encrypted: sessions and keys can be read on the way.",
            "Put a front with TLS before it (docs/how-to/run-in-production.md) and set"
            " REFRACT_BASE_URL to https://…",
        )
    else:
        url = settings.public_url if settings.base_url else served_url or settings.public_url
        yield report_ok("address", f"Short URLs begin with {url}.")


def _check_open_issuers(settings: Settings) -> Iterator[DoctorFinding]:
    for name, issuer in settings.issuers.items():
        if issuer.is_open:
            yield report_warning(
                f"issuer {name}",
                f"Anybody can have an account at {issuer.display_name}, so anybody can sign in"
                " here.",
                f"Set REFRACT_ISSUERS__{name.upper()}__DOMAINS to the email domains that may.",
            )


def _check_proxies(settings: Settings) -> Iterator[DoctorFinding]:
    everybody = [str(network) for network in settings.trusted_proxies if network.prefixlen == 0]
    if everybody:
        yield report_error(
            "proxies",
            f"REFRACT_TRUSTED_PROXIES holds {everybody[0]}: everybody can claim to be anybody.",
            "Name the networks of your proxies alone.",
        )
    elif settings.https and not settings.trusted_proxies:
        yield report_warning(
            "proxies",
            "The address is https, so there is a front, but no proxy is trusted: all visitors seem"
            " to come from it.",
            "Set REFRACT_TRUSTED_PROXIES to the front's address, such as 127.0.0.1/32.",
        )
    elif settings.trusted_proxies and not settings.base_url:
        yield report_warning(
            "proxies",
            "Proxies are trusted, but the public address is not known.",
            "Set REFRACT_BASE_URL.",
        )
    else:
        yield report_ok(
            "proxies", f"{len(settings.trusted_proxies)} networks of proxies are trusted."
        )


def _check_shared_state(settings: Settings) -> Iterator[DoctorFinding]:
    """What several machines must have in common."""
    if settings.dialect != "sqlite" and settings.secret_key is None:
        yield report_warning(
            "secret",
            "The secret lies in this machine's data directory; another machine would make its own"
            " and refuse our forms and cursors.",
            "With more than one machine set REFRACT_SECRET_KEY to the same value everywhere.",
        )
    else:
        yield report_ok("secret", "There is one secret for everybody who serves.")
    if settings.role == "redirect" and settings.dialect == "sqlite":
        yield report_warning(
            "role",
            "A redirect node on SQLite shares one machine with everything else.",
            "For several machines: refract move.",
        )
    issuers = getattr(settings, "issuers", {})
    if settings.environment == "production" and not issuers and settings.signin_links == "auto":
        yield report_warning(
            "sign-in",
            "People sign in by links from the terminal, since there is no identity provider.",
            "Configure an issuer for a team.",
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
                else report_ok(name.removesuffix("_path"), f"{path} can be read.")
            )
        else:
            yield report_error(
                name.removesuffix("_path"),
                f"{path} cannot be read.",
                f"Correct {variable}, or give this user the right to read it.",
            )


def _check_geoip(path: Path) -> DoctorFinding:
    try:
        with maxminddb.open_database(path) as reader:
            kind = reader.metadata().database_type
    except (maxminddb.InvalidDatabaseError, OSError, ValueError) as exc:
        return report_error(
            "geoip",
            f"{path} is no .mmdb database ({exc}).",
            "Download it again. Places are unknown meanwhile.",
        )
    return report_ok("geoip", f"{path} can be read: {kind}.")


def _check_metrics(settings: Settings) -> Iterator[DoctorFinding]:
    seen = not is_loopback(settings.host) or bool(settings.trusted_proxies)
    if settings.metrics_token is None and seen:
        yield report_warning(
            "metrics",
            "REFRACT_METRICS_TOKEN is not set: this node's figures are for this machine alone, and"
            " no Prometheus can read them.",
            "Set it on every node, to what Prometheus sends.",
        )
    else:
        yield report_ok(
            "metrics",
            (
                "A token guards them."
                if settings.metrics_token
                else "They are read on this machine alone."
            ),
        )


def _check_processes(settings: Settings) -> Iterator[DoctorFinding]:
    cores = os.cpu_count() or 1
    if settings.workers > 2 * cores:
        yield report_warning(
            "processes",
            f"{settings.workers} processes share {cores} cores: they only get in each other's way.",
            f"Set REFRACT_WORKERS to {cores}.",
        )
    else:
        yield report_ok("processes", f"{settings.workers} of {cores} cores serve.")
