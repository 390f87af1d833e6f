"""API keys: shown once, stored as digests, counted in batches."""

import re
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select, update

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.ids import ALPHABET, encode_base62
from refract.core.runtime import Runtime
from refract.core.secrets import Secret, hash_credential
from refract.identity import audit
from refract.identity.errors import (
    AdminScopeNotAllowed,
    InvalidCredentials,
    KeyExpired,
    KeyNotFound,
    ScopeNotAllowed,
)
from refract.identity.models import ApiKey, KeyStatus, Scope, User, UserRole, UserStatus

if TYPE_CHECKING:  # roles without the API do not load schemas
    from refract.identity.schemas import KeyCreate

KEY_PREFIX = "refract_"
SHOWN_PREFIX_LENGTH = 16
_BODY_LENGTH = 32
_CHECKSUM_LENGTH = 6
_SHAPE = re.compile(rf"^{KEY_PREFIX}[0-9A-Za-z]{{{_BODY_LENGTH + _CHECKSUM_LENGTH}}}$")
DEFAULT_SCOPES = (Scope.READ, Scope.WRITE)
EXPIRY_REMINDER = timedelta(days=14)
"""How long before its expiry a key is highlighted in lists."""


@dataclass(frozen=True, slots=True)
class ParentKey:
    """The key that creates another, with the scopes it can pass on."""

    key_id: int
    scopes: frozenset[Scope]
    user_id: int


def generate_key() -> str:
    """Return a new key: `refract_`, 190 random bits, and a checksum.

    By the checksum secret scanners and we recognize a key without a look-up.
    """
    body = "".join(secrets.choice(ALPHABET) for _ in range(_BODY_LENGTH))
    return f"{KEY_PREFIX}{body}{_compute_checksum(body)}"


def is_key_shaped(text: str) -> bool:
    """Return whether a text has the form and checksum of a key, so that a look-up is worthwhile."""
    return bool(_SHAPE.match(text)) and text[-_CHECKSUM_LENGTH:] == _compute_checksum(
        text[len(KEY_PREFIX) : -_CHECKSUM_LENGTH]
    )


def _compute_checksum(body: str) -> str:
    return encode_base62(zlib.crc32(body.encode())).rjust(_CHECKSUM_LENGTH, "0")


async def create_key(
    session: WriteSession,
    rt: Runtime,
    user: User,
    name: str,
    scopes: list[Scope],
    *,
    expires_at: datetime | None = None,
    parent: ParentKey | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; return its row and the key itself, which is not stored.

    A key created with another key (`parent`) has no scope that the parent lacks and expires no
    later.
    """
    granted = list(dict.fromkeys(scopes)) or list(DEFAULT_SCOPES)
    for scope in granted:
        if parent is not None and scope not in parent.scopes:
            raise ScopeNotAllowed(scope=scope)
        if scope == Scope.ADMIN and user.role != UserRole.ADMIN:
            raise AdminScopeNotAllowed
    if parent is not None:
        expires_at = await _limit_to_parent(session, rt, parent, expires_at)
    clear = generate_key()
    row = ApiKey(
        id=rt.ids.next_id(),
        user_id=user.id,
        key_hash=hash_credential(clear),
        key_prefix=clear[:SHOWN_PREFIX_LENGTH],
        name=name,
        scopes=[str(scope) for scope in granted],
        status=KeyStatus.ACTIVE,
        created_at=rt.clock.now(),
        usage_count=0,
        expires_at=expires_at,
        parent_id=parent.key_id if parent is not None else None,
    )
    session.add(row)
    await session.flush()
    return row, clear


async def create_audited_key(
    session: WriteSession,
    rt: Runtime,
    user: User,
    new: "KeyCreate",
    *,
    parent: ParentKey | None = None,
    detail: str | None = None,
) -> tuple[ApiKey, str]:
    """Create a key like `create_key`, and record it in the audit log with `detail`."""
    row, clear = await create_key(
        session, rt, user, new.name, new.scopes, expires_at=new.expires_at, parent=parent
    )
    await audit.record_event(
        session, rt, "key.created", actor=user, target=row.key_prefix, detail=detail
    )
    return row, clear


async def _limit_to_parent(
    session: WriteSession, rt: Runtime, parent: ParentKey, expires_at: datetime | None
) -> datetime | None:
    """Return the child's expiry. The lock on its user orders it with a revocation of the parent."""
    await session.get_one(User, parent.user_id, with_for_update=True)
    row = await session.get(ApiKey, parent.key_id, populate_existing=True)
    if row is None or row.status_at(rt.clock.now()) != KeyStatus.ACTIVE:
        raise InvalidCredentials
    return min((end for end in (expires_at, row.expires_at) if end is not None), default=None)


async def find_key(session: ReadSession, clear: str, at: datetime) -> tuple[ApiKey, User] | None:
    """Return an active key with its active user, or None. Raises `KeyExpired`.

    Not cached: a revoked key is refused immediately, in every process.
    """
    if not is_key_shaped(clear):
        return None
    found = await session.fetch(_ACTIVE_KEY, key_hash=hash_credential(clear))
    if not found:
        return None
    key, user = found[0]
    if key.status_at(at) == KeyStatus.EXPIRED:
        raise KeyExpired(date=f"{key.expires_at:%-d %b %Y}")
    return key, user


_ACTIVE_KEY = PreparedSelect(
    lambda: (
        select(ApiKey, User)
        .join(User, User.id == ApiKey.user_id)
        .where(
            ApiKey.key_hash == bindparam("key_hash"),
            ApiKey.status == KeyStatus.ACTIVE,
            User.status == UserStatus.ACTIVE,
        )
    )
)


def derive_signature_token(secret: Secret, key_id: int) -> str:
    """Return the token by which YOURLS clients sign requests: 32 hexadecimal digits.

    It is derived, because signatures that expire need it in the clear, and keys are digests.
    """
    return secret.sign("yourls-signature", key_id.to_bytes(8, "big"), size=16).hex()


async def list_usable_keys(session: ReadSession, at: datetime) -> list[tuple[ApiKey, User]]:
    """Return all keys that may be used now, with their users."""
    usable = (
        select(ApiKey, User)
        .join(User, User.id == ApiKey.user_id)
        .where(ApiKey.status == KeyStatus.ACTIVE, User.status == UserStatus.ACTIVE)
    )
    rows = await session.execute(usable.order_by(ApiKey.id))
    return [(key, user) for key, user in rows if key.status_at(at) == KeyStatus.ACTIVE]


def is_expiring_soon(key: ApiKey, at: datetime) -> bool:
    """Return whether an active key expires within `EXPIRY_REMINDER`."""
    return (
        key.status_at(at) == KeyStatus.ACTIVE
        and key.expires_at is not None
        and key.expires_at - at <= EXPIRY_REMINDER
    )


async def list_keys(
    session: ReadSession, user: User, *, include_revoked: bool = False
) -> list[ApiKey]:
    """Return the keys of a user, newest first."""
    statuses = [KeyStatus.ACTIVE, KeyStatus.REVOKED] if include_revoked else [KeyStatus.ACTIVE]
    rows = await session.fetch(_OWN_KEYS, user_id=user.id, statuses=statuses)
    return [row[0] for row in rows]


_OWN_KEYS = PreparedSelect(
    lambda: (
        select(ApiKey)
        .where(
            ApiKey.user_id == bindparam("user_id"),
            ApiKey.status.in_(bindparam("statuses", expanding=True)),
        )
        .order_by(ApiKey.created_at.desc(), ApiKey.id.desc())
    )
)


async def revoke_key(session: WriteSession, user: User, key_id: int) -> list[ApiKey]:
    """Revoke a key and all its descendants; return those that were not revoked before.

    Keys of a team may be among these. Raises `KeyNotFound`, also for a key of another user.
    """
    await session.get_one(User, user.id, with_for_update=True)
    own = select(ApiKey).where(ApiKey.id == key_id, ApiKey.user_id == user.id)
    family = children = list(await session.scalars(own.execution_options(populate_existing=True)))
    if not family:
        raise KeyNotFound
    while children:
        parents = [row.id for row in children]
        created = select(ApiKey).where(ApiKey.parent_id.in_(parents)).order_by(ApiKey.id)
        children = list(await session.scalars(created.execution_options(populate_existing=True)))
        family = [*family, *children]
    revoked = [row for row in family if row.status != KeyStatus.REVOKED]
    for row in revoked:
        row.status = KeyStatus.REVOKED
    await session.flush()
    return revoked


async def revoke_audited_key(
    session: WriteSession, rt: Runtime, user: User, key_id: int, *, detail: str | None = None
) -> list[ApiKey]:
    """Revoke like `revoke_key`, and record each key in the audit log with `detail`."""
    revoked = await revoke_key(session, user, key_id)
    for row in revoked:
        await audit.record_event(
            session, rt, "key.revoked", actor=user, target=row.key_prefix, detail=detail
        )
    return revoked


@dataclass(slots=True)
class KeyUsageRecord:
    """Usage of a key since the last flush."""

    requests: int
    last_at: datetime
    network: str | None = None


async def record_key_usage(session: WriteSession, used: dict[int, KeyUsageRecord]) -> None:
    """Add usage by key id."""
    for key_id, usage in sorted(used.items()):
        values = {"usage_count": ApiKey.usage_count + usage.requests, "last_used_at": usage.last_at}
        network = {"last_used_network": usage.network} if usage.network else {}
        await session.execute(update(ApiKey).where(ApiKey.id == key_id).values(**values, **network))
