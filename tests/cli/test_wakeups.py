"""Wake-ups between the processes of a node."""

import asyncio
from pathlib import Path

from refract.core.signals import Signals
from refract.server.wakeups import open_wakeup_sender, receive_wakeups
from tests.waiting import eventually


async def test_a_signal_in_one_process_wakes_the_other(tmp_path: Path) -> None:
    woken = asyncio.Event()
    signals = Signals()
    with open_wakeup_sender(tmp_path) as sender, signals.listen("jobs", sender):
        signals.send("jobs")  # no receiver yet, which is no error
        async with receive_wakeups(tmp_path, woken.set):
            assert not woken.is_set()
            signals.send("jobs")
            await eventually(woken.is_set)


async def test_a_successor_takes_the_place_and_a_flood_blocks_no_sender(tmp_path: Path) -> None:
    old, new = asyncio.Event(), asyncio.Event()
    with open_wakeup_sender(tmp_path) as sender:
        async with receive_wakeups(tmp_path, old.set), receive_wakeups(tmp_path, new.set):
            for _ in range(5_000):  # more than the socket's buffer holds
                sender.set()
            await eventually(new.is_set)
            assert not old.is_set()
            new.clear()
            sender.set()
            await eventually(new.is_set)
