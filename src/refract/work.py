"""Every kind of background work there is, and when the periodic ones begin."""

from refract.core.runtime import Runtime
from refract.identity import jobs as identity_jobs
from refract.jobs import upkeep
from refract.jobs.registry import Registry
from refract.jobs.worker import Worker
from refract.links import jobs as link_jobs
from refract.redirect import jobs as redirect_jobs

HANDLERS = (*upkeep.HANDLERS, *identity_jobs.HANDLERS, *link_jobs.HANDLERS, *redirect_jobs.HANDLERS)
PERIODIC = (*upkeep.PERIODIC, *identity_jobs.PERIODIC, *link_jobs.PERIODIC, *redirect_jobs.PERIODIC)


def worker(rt: Runtime) -> Worker:
    """The worker of this process."""
    return Worker(rt, Registry.of(HANDLERS), periodic=PERIODIC)
