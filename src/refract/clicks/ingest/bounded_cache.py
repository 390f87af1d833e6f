"""A cache with a bounded number of entries."""

from collections.abc import Callable
from typing import TypeVar

CachedValue = TypeVar("CachedValue")


class BoundedCache(dict[bytes, CachedValue]):
    """A dict that loads missing values, and is cleared when it is full.

    A hit costs as much as in a dict. A flood of invented keys cannot make it grow, and the frequent
    ones are loaded again quickly.
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
