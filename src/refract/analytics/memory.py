"""Answers that are remembered, a bounded number of them."""

from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


class Memory(dict[bytes, Answer]):
    """A dict that asks for what it does not hold, and begins anew when it is full.

    A hit costs what a dict costs. A flood of invented questions cannot make it grow; those that matter are back at once.
    """

    def __init__(self, ask: Callable[[bytes], Answer], most: int) -> None:
        super().__init__()
        self._ask = ask
        self._most = most

    def __missing__(self, question: bytes) -> Answer:
        if len(self) >= self._most:
            self.clear()
        answer = self[question] = self._ask(question)
        return answer
