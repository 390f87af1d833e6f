"""The lanes that tests compare: compiled, Python, and the parser alone."""

import pytest

from refract.clicks.spool.writer import ResponseTransport
from refract.redirect.lane import (
    FindNetwork,
    HitResponderClass,
    LaneState,
    PythonHitResponder,
    load_compiled,
)

LANES = ["compiled", "python", "parser"]


class NoHitResponder:
    """Leaves every hit to the parser, as for requests that are not plain."""

    def __init__(
        self,
        shared: LaneState,
        transport: ResponseTransport,
        network: bytes,
        find_network: FindNetwork | None,
    ) -> None: ...

    def answer(self, data: bytes) -> bool:  # noqa: ARG002 - the protocol's name
        return False


def get_responder(lane: str) -> HitResponderClass:
    """Return how responders of a lane are made. Skips the test if it is not compiled."""
    if lane == "python":
        return PythonHitResponder
    if lane == "parser":
        return NoHitResponder
    compiled, reason = load_compiled()
    if compiled is None:
        pytest.skip(f"no compiled lane: {reason} (python3 -m tools.extension)")
    return compiled
