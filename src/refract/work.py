"""Every kind of background work there is, and when the periodic ones begin."""

from refract.core.runtime import Runtime
from refract.jobs import upkeep
from refract.jobs.registry import Registry
from refract.jobs.worker import Worker
from refract.redirect import jobs as redirect_jobs

HANDLERS = (*upkeep.HANDLERS, *redirect_jobs.HANDLERS)
PERIODIC = (*upkeep.PERIODIC, *redirect_jobs.PERIODIC)


def worker(rt: Runtime) -> Worker:
    """The worker of this process."""
    return Worker(rt, Registry.of(HANDLERS), periodic=PERIODIC)
