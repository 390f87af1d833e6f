"""News inside one process: whoever waits for a topic is woken, and whoever follows one is told, at once."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Signals:
    """Wake-ups carry no message, so nothing is lost by being woken once for several sends. News is told to each follower, in order."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[asyncio.Event]] = {}
        self._followers: dict[str, list[Callable[[Any], None]]] = {}

    @contextmanager
    def listen(self, topic: str, event: asyncio.Event) -> Iterator[None]:
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

    @contextmanager
    def subscribe(self, topic: str, told: Callable[[Any], None]) -> Iterator[None]:
        """For as long as the block runs, `told` gets everything that is told of the topic, before the teller goes on."""
        followers = self._followers.setdefault(topic, [])
        followers.append(told)
        try:
            yield
        finally:
            followers.remove(told)

    def publish(self, topic: str, news: Any) -> None:
        for told in self._followers.get(topic, ()):
            told(news)
