"""Calls that one process answers and another has to know of."""

from refract.core.runtime import Runtime
from refract.limits.shared_limits import MissLimit

NETWORK = "c6336400"


async def test_a_process_that_only_notes_misses_knows_when_none_is_left(rt: Runtime) -> None:
    limit = rt.settings.misses_per_minute
    assert limit is not None
    misses = MissLimit(rt)
    for _ in range(limit - 1):
        misses.note_call(NETWORK)
    assert not misses.is_code_refused(bytes.fromhex(NETWORK))
    assert misses.exhausted_until_ns == 0
    for _ in range(3):  # and is not stopped by it
        misses.note_call(NETWORK)
    assert misses.is_code_refused(bytes.fromhex(NETWORK))
    assert misses.exhausted_until_ns > rt.clock.now_ns()
