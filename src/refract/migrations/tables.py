"""Every table of every feature, imported in one place: for migrations' tests, `move`, `backup` and `verify`."""

from refract.core.leases import WorkerId
from refract.core.types import Model
from refract.identity import models as identity
from refract.links import safety_models as links_safety
from refract.web import models as web

metadata = Model.metadata

__all__ = ["WorkerId", "identity", "links_safety", "metadata", "web"]
