"""Identity providers, as an operator writes them down."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

IssuerKind = Literal["oidc", "zitadel", "clerk"]
SignatureAlgorithm = Literal[
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
]
CommaSeparated = Annotated[tuple[str, ...], NoDecode]

ISSUER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
_LABELS: dict[IssuerKind, str] = {"zitadel": "Zitadel", "clerk": "Clerk"}
SUBJECT_PREFIX = "sub:"
"""What marks an administrator's subject. Addresses need no mark: they have an `@`, and a subject may have one too."""
_OPEN_HOSTS = (
    "accounts.google.com",
    "appleid.apple.com",
    "gitlab.com",
    "www.facebook.com",
    "www.linkedin.com",
)
_MICROSOFT_OPEN = ("common", "consumers", "organizations")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Issuer(BaseModel):
    """One identity provider. Everything else about it is read from its discovery document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: IssuerKind = "oidc"
    """`zitadel` and `clerk` know their provider's habits; `oidc` is any other that has a discovery document."""

    url: str
    """The issuer, exactly as its discovery document and its tokens spell it, such as `https://id.example.com`."""

    client_id: str = Field(min_length=1, max_length=255)
    """The client that the provider registered for Refract."""

    client_secret: SecretStr | None = None
    """The client's secret. Left out: a public client, which proves itself by PKCE alone."""

    client_secret_file: Path | None = None
    """A file that holds the client's secret, for those who keep secrets out of the environment."""

    label: str | None = Field(default=None, min_length=1, max_length=40)
    """What the sign-in button says after "Continue with". Left out: the provider's name, or its host."""

    scopes: str = "openid profile email"
    """What is asked for at sign-in, separated by spaces."""

    audiences: CommaSeparated = ()
    """Audiences (separated by commas) that a Bearer token may be meant for, beside the client itself."""

    parties: CommaSeparated = ()
    """Further clients or origins (separated by commas) whose tokens are accepted as Bearer."""

    admins: CommaSeparated = ()
    """Who is an administrator from their next sign-in on, and as long as they are named: verified email addresses, or subjects written
    `sub:…`, separated by commas."""

    domains: CommaSeparated = ()
    """Email domains (separated by commas) whose verified addresses may sign in. Left out: everybody whom the provider lets in."""

    algorithms: Annotated[tuple[SignatureAlgorithm, ...], NoDecode] = (
        "RS256",
        "ES256",
        "PS256",
        "Ed25519",
        "EdDSA",
    )
    """Signature algorithms that tokens may use, separated by commas. Shared secrets are never accepted; `EdDSA` is the older name of
    `Ed25519`, with that curve alone."""

    @field_validator("audiences", "parties", "admins", "domains", "algorithms", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        return (
            tuple(part.strip() for part in value.split(",") if part.strip())
            if isinstance(value, str)
            else value
        )

    @field_validator("admins")
    @classmethod
    def _check_admins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if entry == SUBJECT_PREFIX or (
                not entry.startswith(SUBJECT_PREFIX) and "@" not in entry
            ):
                problem = (
                    f'"{entry}" is no email address: write a subject as'
                    f" {SUBJECT_PREFIX}{entry if entry != SUBJECT_PREFIX else '…'}"
                )
                raise ValueError(problem)
        return value

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not is_safe_url(value) or len(value) > 255 or "?" in value or "#" in value:
            problem = (
                "write the issuer as its tokens do, such as https://id.example.com; plain http is"
                " for this machine alone"
            )
            raise ValueError(problem)
        return value

    @field_validator("scopes")
    @classmethod
    def _add_openid_scope(cls, value: str) -> str:
        return value if "openid" in value.split() else f"openid {value}"

    @model_validator(mode="after")
    def _check_single_secret(self) -> Self:
        if self.client_secret is not None and self.client_secret_file is not None:
            problem = "give client_secret or client_secret_file, not both"
            raise ValueError(problem)
        if self.client_secret_file is not None and not self.client_secret_file.is_file():
            problem = f"there is no file {self.client_secret_file}"
            raise ValueError(problem)
        return self

    @property
    def secret(self) -> str | None:
        if self.client_secret_file is not None:
            return self.client_secret_file.read_text().strip()
        return self.client_secret.get_secret_value() if self.client_secret is not None else None

    @property
    def admin_emails(self) -> frozenset[str]:
        """Return the addresses of administrators, as they were written."""
        return frozenset(entry for entry in self.admins if not entry.startswith(SUBJECT_PREFIX))

    @property
    def admin_subjects(self) -> frozenset[str]:
        """Return the subjects of administrators."""
        return frozenset(
            entry.removeprefix(SUBJECT_PREFIX)
            for entry in self.admins
            if entry.startswith(SUBJECT_PREFIX)
        )

    @property
    def is_open(self) -> bool:
        """Return whether anybody in the world can get an account there, and no domain narrows that."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        several = (
            host == "login.microsoftonline.com"
            and parts.path.strip("/").split("/")[0] in _MICROSOFT_OPEN
        )
        return not self.domains and (
            host in _OPEN_HOSTS
            or several
            or self.kind == "clerk"
            or host.endswith(".clerk.accounts.dev")
        )

    @property
    def display_name(self) -> str:
        return self.label or _LABELS.get(self.kind) or urlsplit(self.url).hostname or self.url


def is_safe_url(url: str) -> bool:
    """An https address; plain http only where nothing leaves the machine."""
    try:
        parts = urlsplit(url)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        return False
    if (
        not parts.hostname
        or parts.username
        or not port_fits
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def check_issuer_names(issuers: dict[str, Issuer]) -> None:
    """A name stands in addresses, and an issuer's tokens must lead to one configuration."""
    for name in issuers:
        if not ISSUER_NAME.fullmatch(name):
            problem = f'"{name}" cannot be the name of an issuer: use up to 31 of a-z, 0-9, - and _'
            raise ValueError(problem)
    if len({one.url for one in issuers.values()}) < len(issuers):
        problem = "two issuers have the same url"
        raise ValueError(problem)
