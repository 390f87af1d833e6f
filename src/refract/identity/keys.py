"""API keys: made once, shown once, found by digest, counted in batches."""

import re
import secrets
import zlib
from datetime import datetime

from sqlalchemy import select, update

from refract.core.db import ReadSession, WriteSession
from refract.core.ids import ALPHABET, encode
from refract.core.runtime import Runtime
from refract.core.secrets import digest
from refract.identity.errors import AdminScopeRefused, KeyNotFound, ScopeTooWide
from refract.identity.models import ApiKey, KeyStatus, Scope, User, UserRole, UserStatus

PREFIX = "refract_"
SHOWN = 16
_BODY = 32
_CHECK = 6
_SHAPE = re.compile(rf"^{PREFIX}[0-9A-Za-z]{{{_BODY + _CHECK}}}$")
DEFAULT_SCOPES = (Scope.READ, Scope.WRITE)


def make_key() -> str:
    """`refract_`, 190 random bits, and a checksum by which scanners and we tell a key from a look-alike."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(_BODY))
    return f"{PREFIX}{body}{_checksum(body)}"


def looks_like_key(text: str) -> bool:
    """Whether asking the database is worth it."""
    return bool(_SHAPE.match(text)) and text[-_CHECK:] == _checksum(text[len(PREFIX) : -_CHECK])


def _checksum(body: str) -> str:
    return encode(zlib.crc32(body.encode())).rjust(_CHECK, "0")


async def create_key(
    session: WriteSession, rt: Runtime, user: User, name: str, scopes: list[Scope], *, granted_by: frozenset[Scope] | None = None
) -> tuple[ApiKey, str]:
    """A new key and its only appearance in the clear. `granted_by` are the scopes of the key that asks, if a key asks."""
    wanted = list(dict.fromkeys(scopes)) or list(DEFAULT_SCOPES)
    for scope in wanted:
        if granted_by is not None and scope not in granted_by:
            raise ScopeTooWide(scope=scope)
        if scope == Scope.ADMIN and user.role != UserRole.ADMIN:
            raise AdminScopeRefused
    clear = make_key()
    row = ApiKey(
        id=rt.ids.next_id(),
        user_id=user.id,
        key_hash=digest(clear),
        key_prefix=clear[:SHOWN],
        name=name,
        scopes=[str(scope) for scope in wanted],
        status=KeyStatus.ACTIVE,
        created_at=rt.clock.now(),
        usage_count=0,
    )
    session.add(row)
    await session.flush()
    return row, clear


async def find_by_key(session: ReadSession, clear: str) -> tuple[ApiKey, User] | None:
    """The active key of an active person, asked of the database each time: a revoked key is refused at once, everywhere."""
    if not looks_like_key(clear):
        return None
    found = await session.execute(
        select(ApiKey, User)
        .join(User, User.id == ApiKey.user_id)
        .where(ApiKey.key_hash == digest(clear), ApiKey.status == KeyStatus.ACTIVE, User.status == UserStatus.ACTIVE)
    )
    row = found.one_or_none()
    return None if row is None else (row[0], row[1])


async def keys_of(session: ReadSession, user: User, *, revoked_too: bool = False) -> list[ApiKey]:
    """Newest first."""
    statuses = [KeyStatus.ACTIVE, KeyStatus.REVOKED] if revoked_too else [KeyStatus.ACTIVE]
    wanted = select(ApiKey).where(ApiKey.user_id == user.id, ApiKey.status.in_(statuses))
    return list(await session.scalars(wanted.order_by(ApiKey.created_at.desc(), ApiKey.id.desc())))


async def revoke_key(session: WriteSession, user: User, key_id: int) -> ApiKey:
    """Revoking twice is harmless; another person's key looks absent."""
    row = await session.scalar(select(ApiKey).where(ApiKey.id == key_id, ApiKey.user_id == user.id))
    if row is None:
        raise KeyNotFound
    row.status = KeyStatus.REVOKED
    await session.flush()
    return row


async def note_usage(session: WriteSession, used: dict[int, tuple[int, datetime]]) -> None:
    """Add what was counted in memory: key id → requests and the time of the last one."""
    for key_id, (requests, last) in sorted(used.items()):
        await session.execute(
            update(ApiKey).where(ApiKey.id == key_id).values(usage_count=ApiKey.usage_count + requests, last_used_at=last)
        )
