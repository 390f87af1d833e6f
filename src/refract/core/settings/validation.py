"""Types of settings with their validation. Messages say how to write the value."""

import ipaddress
import re
from typing import TYPE_CHECKING, Annotated, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode

from refract.core.ip_addresses import is_loopback
from refract.core.settings.issuers import Issuer, check_issuer_names

ClientDialect = Literal["shlink", "linkding", "yourls", "kutt", "karakeep"]
NetworkValue = ipaddress.IPv4Network | ipaddress.IPv6Network


def _parse_networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return tuple(
            ipaddress.ip_network(part.strip()) for part in value.split(",") if part.strip()
        )
    except ValueError as exc:
        problem = f"{exc}. Write networks such as 10.0.0.0/8, separated by commas"
        raise ValueError(problem) from exc


def _parse_ports(value: object) -> object:
    ports = (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )
    if isinstance(ports, list | tuple) and all(
        str(port).isdecimal() and 0 < int(port) < 65536 for port in ports
    ):
        return tuple(int(port) for port in ports)
    problem = "Write port numbers such as 80,443, separated by commas"
    raise ValueError(problem)


def _parse_dialects(value: object) -> object:
    if not isinstance(value, str):
        return value
    names = tuple(dict.fromkeys(part.strip().lower() for part in value.split(",") if part.strip()))
    if not set(names) <= set(get_args(ClientDialect)):
        problem = f"Write names from {', '.join(get_args(ClientDialect))}, separated by commas"
        raise ValueError(problem)
    return names


def _parse_number(value: object) -> object:
    """Parse a number that the environment gives as text; a Literal of numbers takes no text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _check_origin(value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value.rstrip("/"))
    more = parts.path or parts.query or parts.fragment or parts.username
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or more
        or not _has_valid_port(parts)
    ):
        problem = "write scheme and host alone, such as https://go.example.com"
        raise ValueError(problem)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _check_database_url(value: str | None) -> str | None:
    if value is None:
        return None
    if value.startswith("postgres://"):  # as some platforms write it
        value = f"postgresql://{value.removeprefix('postgres://')}"
    if urlsplit(value).scheme not in ("sqlite", "postgresql", "mysql"):
        problem = "begin it with sqlite://, postgresql:// or mysql://"
        raise ValueError(problem)
    if _has_unencoded_password(value):
        problem = (
            "write special characters of the password percent-encoded: # as %23, @ as %40, / as"
            " %2F, : as %3A, ? as %3F, % as %25"
        )
        raise ValueError(problem)
    if not _is_complete_url(value):
        problem = (
            "write it as sqlite:////path/to/file, postgresql://user@host/database or"
            " mysql://user@host/database"
        )
        raise ValueError(problem)
    return value


def _has_unencoded_password(database_url: str) -> bool:
    """Return whether a password seems to contain characters that end it.

    That is a fragment, a second @, or an @ after the host.
    """
    parts = urlsplit(database_url)
    if parts.scheme == "sqlite":
        return False
    return (
        bool(parts.fragment)
        or "#" in database_url
        or parts.netloc.count("@") > 1
        or "@" in parts.path + parts.query
    )


def _check_model_url(value: str | None) -> str | None:
    if value is not None and (
        urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname
    ):
        problem = "write the address up to the version, such as http://127.0.0.1:11434/v1"
        raise ValueError(problem)
    return value.rstrip("/") if value else None


def _check_redis_url(value: str | None) -> str | None:
    if value is not None and urlsplit(value).scheme not in ("redis", "rediss", "unix"):
        problem = "begin it with redis:// or rediss://"
        raise ValueError(problem)
    return value


def _check_smtp_url(value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or not _has_valid_port(parts):
        problem = "write it as smtp://user:password@host:587 or smtps://user:password@host:465"
        raise ValueError(problem)
    if _has_unencoded_password(value) or parts.path not in ("", "/") or parts.query:
        problem = (
            "write special characters of user and password percent-encoded (@ as %40, / as %2F),"
            " and nothing after the port"
        )
        raise ValueError(problem)
    return value


def _check_mail_address(value: str | None) -> str | None:
    """Check a sender, with or without a name: it must fit into one header."""
    if value is not None and not _SENDER.fullmatch(value):
        problem = "write go@example.com or Refract <go@example.com>"
        raise ValueError(problem)
    return value


_SENDER = re.compile(r"[^\s<>@,]+@[^\s<>@,]+|[^<>@,\r\n]* <[^\s<>@,]+@[^\s<>@,]+>")


def _check_collector_url(value: str | None) -> str | None:
    if value is not None and (
        urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname
    ):
        problem = "write it as http://host:4318"
        raise ValueError(problem)
    return value


def _parse_limit(value: object, minimum: int) -> int | None:
    if value is None or value == "unlimited":
        return None
    digits = str(value).strip()
    if isinstance(value, bool) or not (
        digits.isascii() and digits.isdigit() and int(digits) >= minimum
    ):
        problem = f"write a whole number from {minimum}, or unlimited"
        raise ValueError(problem)
    return int(digits)


def _parse_positive_limit(value: object) -> int | None:
    return _parse_limit(value, 1)


def _parse_anonymous_limit(value: object) -> int | None:
    return _parse_limit(value, 0)


def _check_secret(value: SecretStr | None) -> SecretStr | None:
    if value is not None and len(value.get_secret_value()) < 32:
        problem = "use at least 32 characters"
        raise ValueError(problem)
    return value


def _check_issuers(value: dict[str, Issuer]) -> dict[str, Issuer]:
    check_issuer_names(value)
    return value


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def _is_complete_url(database_url: str) -> bool:
    """Return whether a database URL is complete.

    A file that several connections can share, or a server and a database.
    """
    parts = urlsplit(database_url)
    if parts.scheme == "sqlite":
        return (
            not parts.netloc and len(parts.path) > 1 and not parts.path.endswith(("/", ":memory:"))
        )
    return _has_valid_port(parts) and len(parts.path) > 1


LimitSetting = Annotated[int | None, NoDecode, BeforeValidator(_parse_positive_limit)]
"""A rate limit; None (written `unlimited`) means no limit.

0 is refused, since it reads like "never".
"""
AnonymousLimitSetting = Annotated[int | None, NoDecode, BeforeValidator(_parse_anonymous_limit)]
"""A limit for strangers, where 0 means "never"."""


def is_limit(field: FieldInfo) -> bool:
    """Return whether a setting takes `unlimited`, which is None once it is read."""
    return any(
        get_args(limit)[-1] in field.metadata for limit in (LimitSetting, AnonymousLimitSetting)
    )


Networks = Annotated[tuple[NetworkValue, ...], NoDecode, BeforeValidator(_parse_networks)]
ClientDialects = Annotated[tuple[ClientDialect, ...], NoDecode, BeforeValidator(_parse_dialects)]
Ports = Annotated[tuple[int, ...], NoDecode, BeforeValidator(_parse_ports)]


def _check_contact(value: str | None) -> str | None:
    """Check a line of security.txt: a mail or web address that cannot contain another line."""
    if value is None:
        return None
    if not re.fullmatch(r"(mailto:[^\s@]+@[^\s@]+|https://[^\s]+)", value) or not value.isascii():
        problem = "write mailto:security@example.com or an address that begins with https://"
        raise ValueError(problem)
    return value


DeadLinkStatus = Annotated[Literal[404, 410], BeforeValidator(_parse_number)]
Origin = Annotated[str | None, AfterValidator(_check_origin)]
DatabaseUrl = Annotated[str | None, AfterValidator(_check_database_url)]
RedisUrl = Annotated[str | None, AfterValidator(_check_redis_url)]
SmtpUrl = Annotated[str | None, AfterValidator(_check_smtp_url)]
MailAddress = Annotated[str | None, AfterValidator(_check_mail_address)]
ModelUrl = Annotated[str | None, AfterValidator(_check_model_url)]
CollectorUrl = Annotated[str | None, AfterValidator(_check_collector_url)]
SecurityContact = Annotated[str | None, AfterValidator(_check_contact)]
SigningKey = Annotated[SecretStr | None, AfterValidator(_check_secret)]
Issuers = Annotated[dict[str, Issuer], AfterValidator(_check_issuers)]


# Checks of `REFRACT_ENVIRONMENT=production`.

if TYPE_CHECKING:
    from refract.core.settings.model import Settings


def find_production_problem(settings: "Settings") -> str | None:
    """Return what REFRACT_ENVIRONMENT=production refuses, with the remedy; None if nothing."""
    if settings.base_url is None:
        return (
            "REFRACT_ENVIRONMENT=production needs REFRACT_BASE_URL, the public address, such as"
            " https://go.example.com"
        )
    host = urlsplit(settings.base_url).hostname or ""
    if not settings.https and not is_loopback(host):
        return (
            "REFRACT_ENVIRONMENT=production needs a REFRACT_BASE_URL with https://, or sessions and"
            " keys can be read on the way. Put a front with TLS before it, or set"
            " REFRACT_ENVIRONMENT=development in a private network"
        )
    if open_networks := [
        str(network) for network in settings.trusted_proxies if network.prefixlen == 0
    ]:
        return (
            f"REFRACT_TRUSTED_PROXIES holds {open_networks[0]}, so anyone could claim any address."
            " Name the networks of your proxies alone"
        )
    return None
