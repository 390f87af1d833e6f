"""All handlers of background jobs and their schedules."""

from refract.admin import jobs as admin_jobs
from refract.clicks import jobs as analytics_jobs
from refract.clicks.archive import jobs as archive_jobs
from refract.core.runtime import Runtime
from refract.identity import jobs as identity_jobs
from refract.jobs import cleanup
from refract.jobs.handlers import HandlerRegistry
from refract.jobs.worker import JobWorker
from refract.library import jobs as library_jobs
from refract.library.imports import jobs as imports_jobs
from refract.library.search import jobs as search_jobs
from refract.links import jobs as link_jobs
from refract.lists import jobs as list_jobs
from refract.redirect import jobs as redirect_jobs
from refract.reports import jobs as report_jobs

_JOB_MODULES = (
    cleanup,
    identity_jobs,
    link_jobs,
    list_jobs,
    redirect_jobs,
    analytics_jobs,
    archive_jobs,
    library_jobs,
    search_jobs,
    imports_jobs,
    report_jobs,
    admin_jobs,
)
HANDLERS = tuple(handler for feature in _JOB_MODULES for handler in feature.HANDLERS)
PERIODIC = tuple(job for feature in _JOB_MODULES for job in feature.PERIODIC)


def build_worker(rt: Runtime) -> JobWorker:
    """Return the worker of this process."""
    return JobWorker(rt, HandlerRegistry.from_functions(HANDLERS), periodic=PERIODIC)
