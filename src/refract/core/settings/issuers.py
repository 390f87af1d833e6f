"""Settings of identity providers."""

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
"""Prefix of an administrator's subject.

Email addresses need none: they have an `@`, but a subject may have one too.
"""
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
    """An identity provider. Everything else about it is read from its discovery document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: IssuerKind = "oidc"
    """The kind of provider.

    `zitadel` and `clerk` are supported specially; `oidc` is any other provider with a discovery
    document.
    """

    url: str
    """The issuer, exactly as in its discovery document and its tokens.

    For example `https://id.example.com`.
    """

    client_id: str = Field(min_length=1, max_length=255)
    """The client id that the provider registered for Refract."""

    client_secret: SecretStr | None = None
    """The client secret. Default: none, for a public client, which authenticates by PKCE alone."""

    client_secret_file: Path | None = None
    """A file with the client secret, to keep it out of the environment."""

    label: str | None = Field(default=None, min_length=1, max_length=40)
    """The text of the sign-in button after "Continue with".

    Default: the provider's name, or its host.
    """

    scopes: str = "openid profile email"
    """The scopes requested at sign-in, separated by spaces."""

    audiences: CommaSeparated = ()
    """Audiences (comma-separated) that Bearer tokens may have, besides the client id."""

    parties: CommaSeparated = ()
    """Further clients or origins (comma-separated) whose tokens are accepted as Bearer tokens."""

    admins: CommaSeparated = ()
    """Administrators: verified email addresses, or subjects written `sub:…`, comma-separated.

    They are administrators from their next sign-in on, for as long as they are listed.
    """

    domains: CommaSeparated = ()
    """Email domains (comma-separated) whose verified addresses may sign in.

    Default: everyone whom the provider lets in.
    """

    groups_claim: str | None = Field(default=None, min_length=1, max_length=255)
    """The claim with a user's groups, such as `groups`, whose values teams can follow.

    Default: none. Many providers send it only for a further scope.
    """

    algorithms: Annotated[tuple[SignatureAlgorithm, ...], NoDecode] = (
        "RS256",
        "ES256",
        "PS256",
        "Ed25519",
        "EdDSA",
    )
    """Signature algorithms that tokens may use, comma-separated.

    Shared secrets are never accepted. `EdDSA` is the older name of `Ed25519`, with that curve only.
    """

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
        """Return the email addresses of administrators, as they were written."""
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
        """Return whether everyone can get an account there, and no domain restricts that."""
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
    """Return whether a URL is https, or plain http to this machine."""
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
    """Check that names fit into URLs, and that no two issuers have the same URL."""
    for name in issuers:
        if not ISSUER_NAME.fullmatch(name):
            problem = f'"{name}" cannot be the name of an issuer: use up to 31 of a-z, 0-9, - and _'
            raise ValueError(problem)
    if len({issuer.url for issuer in issuers.values()}) < len(issuers):
        problem = "two issuers have the same url"
        raise ValueError(problem)
