"""Errors of callers who ask for more than they may."""

from refract.core.errors import Limited


class RateLimited(Limited):
    """Too many requests: {limit} are allowed {per}. Try again in {retry_after} seconds."""


class TooManyOpenRequests(Limited):
    """Your network has {limit} requests open, which is the limit.

    Try again in {retry_after} seconds.
    """


class TooManyNetworkStreams(Limited):
    """Your network has {limit} live streams open, which is the limit.

    Try again in {retry_after} seconds.
    """
