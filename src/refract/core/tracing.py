"""The switch of OpenTelemetry traces.

Where they are off, nothing of the SDK is loaded and nothing is counted.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from refract.core.runtime import Runtime
from refract.core.settings.loader import check_extras

if TYPE_CHECKING:
    from refract.core.otel import Traces


def get_traces(rt: Runtime) -> "Traces | None":
    """Return the traces of this process, None where they are off.

    Raises `ConfigurationError` without the SDK.
    """
    if rt.settings.otlp_url is None:
        return None
    check_extras(rt.settings)
    from refract.core.otel import Traces  # noqa: PLC0415 - only with a collector

    return rt.singleton(Traces)


def job_span(rt: Runtime, kind: str) -> AbstractContextManager[object]:
    """Return a span for the run of a job."""
    traces = get_traces(rt)
    return nullcontext() if traces is None else traces.job_span(kind)


def client_hooks(rt: Runtime) -> dict[str, list[Any]]:
    """Return hooks of an httpx client that pass the current trace on to an operator's service."""
    traces = get_traces(rt)
    return {} if traces is None else {"request": [traces.inject_context]}
