"""Every kind of background work there is, and when the periodic ones begin."""

from refract.admin import jobs as admin_jobs
from refract.analytics import archive_jobs
from refract.analytics import jobs as analytics_jobs
from refract.core.runtime import Runtime
from refract.identity import jobs as identity_jobs
from refract.jobs import upkeep
from refract.jobs.registry import Registry
from refract.jobs.worker import Worker
from refract.library import import_jobs, search_jobs
from refract.library import jobs as library_jobs
from refract.links import jobs as link_jobs
from refract.lists import jobs as list_jobs
from refract.redirect import jobs as redirect_jobs
from refract.reports import jobs as report_jobs

_FEATURES = (
    upkeep,
    identity_jobs,
    link_jobs,
    list_jobs,
    redirect_jobs,
    analytics_jobs,
    archive_jobs,
    library_jobs,
    search_jobs,
    import_jobs,
    report_jobs,
    admin_jobs,
)
HANDLERS = tuple(handler for feature in _FEATURES for handler in feature.HANDLERS)
PERIODIC = tuple(every for feature in _FEATURES for every in feature.PERIODIC)


def worker(rt: Runtime) -> Worker:
    """The worker of this process."""
    return Worker(rt, Registry.of(HANDLERS), periodic=PERIODIC)
