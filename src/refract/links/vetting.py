"""A destination that was looked at before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from refract.core.errors import FieldError, Invalid, RefractError
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, parse_web_url


class InvalidUrl(Invalid):
    """{reason}"""

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason=reason, errors=[FieldError("destination", reason)])


@dataclass(frozen=True, slots=True)
class Vetted:
    """A destination as typed, as it goes into `Location`, and what was found out about it."""

    typed: str
    href: str
    host: str
    flagged: bool = False
    template: object | None = None


async def vet(rt: Runtime, destinations: Sequence[str]) -> list[Vetted | RefractError]:  # noqa: ARG001
    """Each destination, or why it is refused."""
    return [_one(typed) for typed in destinations]


def _one(typed: str) -> Vetted | RefractError:
    try:
        url = parse_web_url(typed)
    except BadUrl as wrong:
        return InvalidUrl(reason=str(wrong))
    return Vetted(typed, url.href, url.host)
