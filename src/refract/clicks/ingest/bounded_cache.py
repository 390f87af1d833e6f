"""Answers that are remembered, a bounded number of them."""

from collections.abc import Callable
from typing import TypeVar

CachedValue = TypeVar("CachedValue")


class BoundedCache(dict[bytes, CachedValue]):
    """A dict that asks for what it does not hold, and begins anew when it is full.

    A hit costs what a dict costs. A flood of invented questions cannot make it grow; those that matter are back at once.
    """

    def __init__(self, load: Callable[[bytes], CachedValue], max_size: int) -> None:
        super().__init__()
        self._load = load
        self._max_size = max_size

    def __missing__(self, question: bytes) -> CachedValue:
        if len(self) >= self._max_size:
            self.clear()
        answer = self[question] = self._load(question)
        return answer
