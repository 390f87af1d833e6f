"""The lanes that tests compare: compiled, Python, and the parser alone."""

import pytest

from refract.clicks.spool.writer import ResponseTransport
from refract.core.compiled import load_compiled
from refract.redirect.lane import (
    MODULE_NAME,
    FindNetwork,
    HitResponderClass,
    LaneState,
    PythonHitResponder,
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
    module, reason = load_compiled(MODULE_NAME)
    if module is None:
        pytest.skip(f"no compiled lane: {reason} (python3 -m tools.extension)")
    responder: HitResponderClass = module.HitResponder
    return responder
