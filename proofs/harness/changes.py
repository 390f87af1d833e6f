"""One change of a link, and how long any process of the site goes on giving the answer from before
it.
"""

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proofs.harness.ears import Ear
from proofs.harness.stage import Planted
from proofs.harness.wire import Answer, get, request

CHECK_SECONDS = 0.005
QUIET_SECONDS = 0.4
PATIENCE = 30.0
OTHER_DOMAIN = "other-domain.example"
History = list[tuple[float, tuple[int, str]]]
"""What a process answered, and when that was received."""

NEXT = {
    "active": ("disable", "edit", "delete", "block"),
    "disabled": ("enable",),
    "deleted": ("undo",),
    "blocked": ("unblock",),
}
AFTER = {
    "disable": "disabled",
    "enable": "active",
    "edit": "active",
    "delete": "deleted",
    "undo": "active",
    "block": "blocked",
    "unblock": "active",
}


@dataclass(slots=True)
class Subject:
    """A link that is changed, and the answer that everybody should give by now.

    `twin` has the same name on another domain, and always the same answer.
    """

    link: Planted
    host: str
    twin: Planted
    state: str = "active"
    edits: int = 0

    @property
    def destination(self) -> str:
        return f"https://{self.host}/{self.edits}" if self.edits else self.link.destination

    @property
    def answer(self) -> tuple[int, str]:
        return (302, self.destination) if self.state == "active" else (410, "")


@dataclass(slots=True)
class Findings:
    """Seconds until each change was gone everywhere, by its kind, and answers that were neither old
    nor new.
    """

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    strange: list[str] = field(default_factory=list)
    asked: int = 0
    twins_asked: int = 0
    twins_changed: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[float]:
        return [seconds for several in self.took.values() for seconds in several]


class Changes:
    """Changes subjects through the API of the site, chosen by a seed, and asks every process for
    them at short intervals.
    """

    def __init__(
        self, key: str, subjects: list[Subject], chance: random.Random, probe_seconds: float
    ) -> None:
        self._header = f"x-api-key: {key}"
        self._free = subjects
        self._chance = chance
        self._probe_seconds = probe_seconds

    async def many(self, groups: Sequence[list[Ear]], number: int, findings: Findings) -> None:
        """So many changes; each group of listeners sees one after another, and the groups work side
        by side.
        """
        left = iter(range(number))

        async def one_after_another(group: list[Ear]) -> None:
            for _ in left:
                await self.one(group, findings)

        await asyncio.gather(*(one_after_another(group) for group in groups))

    async def one(self, group: list[Ear], findings: Findings) -> None:
        """`group` has one connection to each process."""
        subject = self._free.pop(self._chance.randrange(len(self._free)))
        old, path = subject.answer, get(f"/{subject.link.name}")
        await self._ask_twin(subject, group, findings)
        stop = asyncio.Event()
        histories: list[History] = [[] for _ in group]
        probes = [
            asyncio.create_task(self._probe(ear, path, history, stop))
            for ear, history in zip(group, histories, strict=True)
        ]
        try:
            await _until(lambda: all(len(history) > 2 for history in histories))
            before = [len(history) for history in histories]
            kind = self._chance.choice(NEXT[subject.state])
            change = self._request(subject, kind)
            answer = await self._chance.choice(group).ask(change)
            acknowledged = time.monotonic()
            assert 200 <= answer.status < 300, (kind, answer)
            subject.state = AFTER[kind]
            await _until(lambda: _all_new(histories, subject.answer, acknowledged))
        finally:
            stop.set()
            await asyncio.gather(*probes)
        self._note(findings, kind, histories, before, (old, subject.answer, acknowledged))
        await self._ask_twin(subject, group, findings)
        self._free.append(subject)

    async def _ask_twin(self, subject: Subject, group: list[Ear], findings: Findings) -> None:
        """Ask every process for the same name on the other domain."""
        for ear in group:
            seen = seen_in(await ear.ask(get(f"/{subject.link.name}", host=OTHER_DOMAIN)))
            findings.twins_asked += 1
            if seen != (302, subject.twin.destination):
                findings.twins_changed.append(f"{subject.twin.name}: {seen}")

    async def _probe(self, ear: Ear, path: bytes, history: History, stop: asyncio.Event) -> None:
        while not stop.is_set():
            answer = await ear.ask(path)
            history.append((time.monotonic(), seen_in(answer)))
            await asyncio.sleep(self._probe_seconds)

    @staticmethod
    def _note(
        findings: Findings,
        kind: str,
        histories: list[History],
        before: list[int],
        change: tuple[tuple[int, str], tuple[int, str], float],
    ) -> None:
        old, new, acknowledged = change
        last = 0.0
        for history, known in zip(histories, before, strict=True):
            findings.asked += len(history)
            findings.strange += [
                f"before {kind}: {seen}, not {old}" for _, seen in history[:known] if seen != old
            ]
            findings.strange += [
                f"after {kind}: {seen}, neither {old} nor {new}"
                for _, seen in history[known:]
                if seen not in (old, new)
            ]
            last = max([last, *(at for at, seen in history if seen == old)])
        findings.took[kind].append(max(0.0, last - acknowledged))

    def _request(self, subject: Subject, kind: str) -> bytes:
        link = f"/api/v1/links/{subject.link.id}"
        match kind:
            case "edit":
                subject.edits += 1
                return request(
                    "PATCH",
                    link,
                    json.dumps({"destination": subject.destination}).encode(),
                    self._header,
                )
            case "delete":
                return request("DELETE", link, b"", self._header)
            case "block":
                return request(
                    "POST",
                    "/api/v1/admin/blocked-domains",
                    json.dumps({"domain": subject.host}).encode(),
                    self._header,
                )
            case "unblock":
                return request(
                    "DELETE", f"/api/v1/admin/blocked-domains/{subject.host}", b"", self._header
                )
        return request("POST", f"{link}/{kind}", b"", self._header)


def seen_in(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.header("location") or ""


async def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:  # noqa: ASYNC110 - processes send no event
        await asyncio.sleep(CHECK_SECONDS)


def _all_new(histories: list[History], new: tuple[int, str], acknowledged: float) -> bool:
    """Every process has given the new answer, and nothing else, for a while."""
    since = time.monotonic() - QUIET_SECONDS
    if since < acknowledged:
        return False
    for history in histories:
        recent = [seen for at, seen in history[-200:] if at > since]
        if not recent or any(seen != new for seen in recent):
            return False
    return True
