"""Metrics of background jobs."""

from refract.core.runtime import Runtime
from refract.jobs import queries


def count_job(rt: Runtime, kind: str, outcome: str) -> None:
    """Count a job of this kind with this outcome: done, failed, dead, released, lost or expired."""
    rt.metrics.counter(
        "refract_jobs", "Jobs that ended, by kind and outcome.", ("kind", "outcome")
    ).labels(kind, outcome).inc()


async def update_job_gauges(rt: Runtime) -> None:
    """Read the depth of the queue into its gauges. Call it before serving the metrics."""
    depth = rt.metrics.gauge(
        "refract_jobs_depth", "Jobs that are waiting, running or dead.", ("kind", "status")
    )
    oldest = rt.metrics.gauge(
        "refract_jobs_oldest_seconds", "How long the oldest due job has been waiting."
    )
    async with rt.db.read() as session:
        counted = await queries.count_open_jobs(session)
        age = await queries.get_oldest_due_seconds(session, rt)
    depth.clear()
    for (status, kind), number in counted.items():
        depth.labels(kind, status).set(number)
    oldest.set(age)
