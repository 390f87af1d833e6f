"""Errors of counting single clicks."""

from refract.core.errors import Unavailable


class TooManyRecentClicks(Unavailable):
    """Filters are unavailable: the database has more than {limit} single clicks.

    An administrator can lower REFRACT_EVENT_DAYS, which archives them earlier.
    """
