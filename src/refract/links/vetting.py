"""A destination that was looked at before anything is written."""

from refract.links.safety import Vetted, vet
from refract.links.safety_errors import InvalidUrl

__all__ = ["InvalidUrl", "Vetted", "vet"]
