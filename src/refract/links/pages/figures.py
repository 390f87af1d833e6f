"""What the pages of links show of clicks beyond their totals. Who counts them stands above and hands it in when the program is composed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import Request

from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.identity.visitors import Actor
from refract.links.schemas import LinkOut

OfLink = Callable[[Request, Runtime, Actor, LinkOut], Awaitable[dict[str, Any]]]
Sparks = Callable[[ReadSession, Runtime, Sequence[int]], Awaitable[dict[int, list[int]]]]


class Figures:
    """Nothing, until somebody counts."""

    def __init__(self, _rt: Runtime) -> None:
        self.of_link: OfLink | None = None
        """Everything about the clicks of one link, as `links/_analytics.html` wants it."""
        self.sparks: Sparks | None = None
        """Clicks of each link on its latest days, the oldest first."""
