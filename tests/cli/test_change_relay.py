"""Changes of links on their way between the processes of a node."""

from pathlib import Path

from refract.links.changes import TargetChange
from refract.server.change_relay import open_change_sender, receive_changes
from tests.waiting import eventually

CHANGES = [TargetChange(7, 2, ("notes", "new")), TargetChange(0, 0, ())]


async def test_a_commit_in_one_process_reaches_the_other(tmp_path: Path) -> None:
    heard: list[TargetChange] = []
    with open_change_sender(tmp_path) as send:
        send(CHANGES)  # no receiver yet, which is no error
        async with receive_changes(tmp_path, heard.extend):
            send(CHANGES)
            await eventually(lambda: heard == CHANGES)


async def test_many_changes_are_all_there(tmp_path: Path) -> None:
    heard: list[TargetChange] = []
    many = [TargetChange(number, 1, (f"name{number}",)) for number in range(450)]
    with open_change_sender(tmp_path) as send:
        async with receive_changes(tmp_path, heard.extend):
            send(many)
            await eventually(lambda: heard == many)


async def test_a_successor_takes_the_place_and_a_flood_blocks_no_sender(tmp_path: Path) -> None:
    old: list[TargetChange] = []
    new: list[TargetChange] = []
    with open_change_sender(tmp_path) as send:
        async with receive_changes(tmp_path, old.extend), receive_changes(tmp_path, new.extend):
            for _ in range(5_000):  # more than the socket's buffer holds
                send(CHANGES)
            await eventually(lambda: new != [])
            assert not old
            new.clear()
            send(CHANGES)
            await eventually(lambda: new != [])
