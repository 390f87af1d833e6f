"""A child's connection to its parent."""

import os
from pathlib import Path

from refract.server.child_link import ChildLink


async def test_a_parent_that_no_longer_waits_is_no_error(tmp_path: Path) -> None:
    """Regression: a stop while a process was starting left a traceback in the log."""
    reader, writer = os.pipe()
    lifeline, parent = os.pipe()
    link = ChildLink([str(tmp_path), "redirect"], [writer, lifeline])
    os.close(reader)
    await link.notify_ready()
    os.close(parent)
    assert not link.wait_until_prepared()
    os.close(lifeline)
