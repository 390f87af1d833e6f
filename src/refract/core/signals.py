"""Wake-ups inside one process: whoever waits for a topic is woken when somebody sends it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Signals:
    """Carries no message, so nothing is lost by being told once for several sends."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[asyncio.Event]] = {}

    @contextmanager
    def listening(self, topic: str, event: asyncio.Event) -> Iterator[None]:
        """For as long as the block runs, `event` is set by every send."""
        listeners = self._listeners.setdefault(topic, [])
        listeners.append(event)
        try:
            yield
        finally:
            listeners.remove(event)

    def send(self, topic: str) -> None:
        for event in self._listeners.get(topic, ()):
            event.set()
