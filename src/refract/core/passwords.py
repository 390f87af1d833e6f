"""Passwords that people choose: hashed with argon2id, in a thread."""

from functools import cache
from typing import TYPE_CHECKING

from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MEMORY_KIB = 19_456
ITERATIONS = 2
"""With one lane, what OWASP recommends for argon2id: about 20 ms and 19 MiB for each guess."""


async def hash_password(rt: Runtime, password: str) -> str:
    """Return the hash of a password, with its salt and parameters."""
    return await rt.singleton(WorkThreadPool).run(_get_hasher().hash, password)


async def is_password(rt: Runtime, hashed: str, guess: str) -> bool:
    """Return whether a guess is the password. A damaged hash matches nothing."""
    return await rt.singleton(WorkThreadPool).run(_verify, hashed, guess)


def _verify(hashed: str, guess: str) -> bool:
    from argon2.exceptions import (  # noqa: PLC0415 - most processes never see a password
        InvalidHashError,
        VerificationError,
    )

    try:
        return _get_hasher().verify(hashed, guess)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _get_hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher  # noqa: PLC0415 - as above

    return PasswordHasher(time_cost=ITERATIONS, memory_cost=MEMORY_KIB, parallelism=1)
