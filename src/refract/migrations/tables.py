"""The tables of all features, for tests of migrations, `move`, `backup` and `verify`."""

from refract.clicks import models as analytics
from refract.clicks.archive import models as analytics_archive
from refract.compat.linkding import models as compat_linkding
from refract.core.db.types import Model
from refract.core.worker_ids import WorkerId
from refract.domains import models as domains
from refract.identity import models as identity
from refract.identity.invitations import models as identity_invitations
from refract.imports import models as imports
from refract.jobs import models as jobs
from refract.library import models as library
from refract.library import models as library_quota
from refract.library.search import models as library_search
from refract.limits import models as limits
from refract.links import models as links
from refract.links.campaigns import models as links_campaigns
from refract.links.limits import models as links_limits
from refract.links.safety import models as links_safety
from refract.lists import models as lists
from refract.migrations.models import SchemaRequirement
from refract.names import models as names
from refract.reports import models as reports
from refract.tags import models as tags
from refract.teams import models as teams
from refract.web import models as web

metadata = Model.metadata


LIMIT_MODELS: list[type[Model]] = [links_limits.LinkLimit]
"""What redirect nodes write: how often links with a click limit have redirected."""


def list_redirect_tables() -> list[str]:
    """Return the tables that a redirect node reads.

    Names and their targets, who may follow a secure link, and how far its clicks are stored.
    Neither the library nor the audit log, jobs, one-time links or visitors' salts.
    """
    read: list[type[Model]] = [
        *(
            names.Name,
            domains.Domain,
            links.Link,
            links.LinkOwner,
            links.LinkShare,
            links.LinkTotals,
            links.FeedEntry,
        ),
        *LIMIT_MODELS,
        *(links_safety.BlockedDomain, links_safety.BlockEpoch),
        *(lists.LinkList, lists.ListEntry, teams.Team, teams.TeamMember),
        *(identity.User, identity.ApiKey, identity.BrowserSession, identity.IssuerDocuments),
        *(analytics.ListTotals, analytics.SpoolCheckpoint),
    ]
    return sorted(model.__tablename__ for model in read)


def list_limit_tables() -> list[str]:
    """Return the tables that a redirect node writes."""
    return sorted(model.__tablename__ for model in LIMIT_MODELS)


def list_ingest_tables() -> list[str]:
    """Return the tables that the ingester writes.

    Clicks, roll-ups and checkpoints, and the totals of links.
    """
    clicks = {
        str(mapper.local_table)
        for mapper in Model.registry.mappers
        if mapper.class_.__module__.startswith("refract.clicks.")
    }
    return sorted(clicks | {links.LinkTotals.__tablename__})


__all__ = [
    "SchemaRequirement",
    "WorkerId",
    "analytics",
    "analytics_archive",
    "compat_linkding",
    "domains",
    "identity",
    "identity_invitations",
    "imports",
    "jobs",
    "library",
    "library_quota",
    "library_search",
    "limits",
    "links",
    "links_campaigns",
    "links_limits",
    "links_safety",
    "list_ingest_tables",
    "list_limit_tables",
    "list_redirect_tables",
    "lists",
    "metadata",
    "names",
    "reports",
    "tags",
    "teams",
    "web",
]
