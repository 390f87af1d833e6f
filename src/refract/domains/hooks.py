"""What domains need of features above them. `refract.registry` names it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime

CheckFallback = Callable[[Runtime, str], Awaitable[str]]
"""Returns a URL as it is sent to visitors, or raises why links may not lead there.

It may call other services, so no transaction may be open.
"""
PublishChange = Callable[[WriteSession, str], Awaitable[None]]
"""Tells the caches of every process, when the transaction is committed, that this host changed."""


@dataclass(frozen=True, slots=True)
class DomainHooks:
    """What other features do when domains change."""

    check_fallback: CheckFallback
    publish_change: PublishChange
