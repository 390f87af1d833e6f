"""Threads for work that would block the event loop but needs the server's own data."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from refract.core.runtime import Runtime

MAX_THREADS = 2
WorkArgs = ParamSpec("WorkArgs")
WorkResultT = TypeVar("WorkResultT")


class WorkThreadPool:
    """At most `MAX_THREADS` threads in this process; further work waits.

    Separate from asyncio's own executor, so that such work does not delay the lookup of host names.
    The interpreter switches between threads every few milliseconds: use it for Python code, not for
    one long call into C.
    """

    def __init__(self, _rt: Runtime) -> None:
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="work")

    async def run(
        self,
        function: Callable[WorkArgs, WorkResultT],
        *args: WorkArgs.args,
        **kwargs: WorkArgs.kwargs,
    ) -> WorkResultT:
        """Call a function in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, partial(function, *args, **kwargs)
        )

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
