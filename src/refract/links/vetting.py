"""A checked destination."""

from refract.links.safety.errors import InvalidUrl
from refract.links.safety.service import CheckedDestination, check_destinations

__all__ = ["CheckedDestination", "InvalidUrl", "check_destinations"]
