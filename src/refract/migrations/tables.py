"""Every table of every feature, imported in one place: for migrations' tests, `move`, `backup` and `verify`."""

from refract.analytics import archive_models as analytics_archive
from refract.analytics import models as analytics
from refract.core.leases import WorkerId
from refract.core.types import Model
from refract.identity import models as identity
from refract.jobs import models as jobs
from refract.links import models as links
from refract.links import safety_models as links_safety
from refract.lists import models as lists
from refract.names import models as names
from refract.tags import models as tags
from refract.web import models as web

metadata = Model.metadata

__all__ = [
    "WorkerId",
    "analytics",
    "analytics_archive",
    "identity",
    "jobs",
    "links",
    "links_safety",
    "lists",
    "metadata",
    "names",
    "tags",
    "web",
]
