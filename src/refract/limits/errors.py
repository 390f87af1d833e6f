"""Errors of callers who ask for more than they may."""

from refract.core.errors import Limited
from refract.core.phrases import Phrase


class RateLimited(Limited):
    """Too many requests: {limit} are allowed {per}. Try again in {wait}."""

    def __init__(self, *, retry_after: int, limit: int, per: Phrase, remaining: int = 0) -> None:
        super().__init__(retry_after=retry_after, limit=limit, remaining=remaining, per=per)


class TooManyOpenRequests(Limited):
    """Your network has {limit} requests open, which is the limit.

    Try again in {wait}.
    """


class TooManyNetworkStreams(Limited):
    """Your network has {limit} live streams open, which is the limit.

    Try again in {wait}.
    """
