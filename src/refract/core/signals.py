"""Signals inside one process: wake-ups for waiting tasks, and messages for subscribers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Wakeable(Protocol):
    """Something that a signal wakes, such as an `asyncio.Event`."""

    def set(self) -> None: ...


class Signals:
    """Wake-ups and messages by topic.

    Wake-ups carry no message, so several sends may be one wake-up. Messages are delivered to each
    subscriber, in order.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, list[Wakeable]] = {}
        self._followers: dict[str, list[Callable[[Any], None]]] = {}

    @contextmanager
    def listen(self, topic: str, event: Wakeable) -> Iterator[None]:
        """Set `event` on every send while the block runs."""
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
    def subscribe(self, topic: str, callback: Callable[[Any], None]) -> Iterator[None]:
        """Call `callback` with every message of the topic while the block runs.

        It is called before `publish` returns.
        """
        followers = self._followers.setdefault(topic, [])
        followers.append(callback)
        try:
            yield
        finally:
            followers.remove(callback)

    def publish(self, topic: str, news: Any) -> None:
        for callback in self._followers.get(topic, ()):
            callback(news)
