"""The table of provocations: how to make an operation send each of its errors."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.errors.site import Asking

Provocation = Callable[[Asking], Awaitable[object]]

PROVOCATIONS: dict[str, dict[str, Provocation]] = {}
"""By operation and code. What is common to all operations is in `tests.errors.common`."""


def provokes(code: str, *operations: str) -> Callable[[Provocation], Provocation]:
    """Register how these operations (`POST /links`) are made to send a code."""

    def register(provocation: Provocation) -> Provocation:
        for operation in operations:
            method, path = operation.split(" ")
            known = PROVOCATIONS.setdefault(f"{method} /api/v1{path}", {})
            assert code not in known, f"{operation} is provoked to {code} twice"
            known[code] = provocation
        return provocation

    return register


def sends(code: str, *operations: str, **given: Any) -> None:
    """Register a request without preparation: `given` are arguments of `Asking.ask`."""

    @provokes(code, *operations)
    async def ask(asking: Asking) -> object:
        return await asking.ask(**given)
