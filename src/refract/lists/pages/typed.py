"""Addresses as people paste them: read, counted, and given back when they cannot be added."""

from typing import Any

from refract.lists.errors import TooManyAtOnce
from refract.lists.schemas import MOST_AT_ONCE, EntriesResult


def typed_addresses(text: str) -> list[str]:
    """One address a line, or several with blanks between them."""
    return [word for line in text.splitlines() for word in line.split()]


def few_enough(typed: list[str]) -> None:
    if len(typed) > MOST_AT_ONCE:
        raise TooManyAtOnce(most=MOST_AT_ONCE)


def added(result: EntriesResult) -> str:
    twice = sum(one.entry is not None and one.entry.duplicate for one in result.results)
    words = f"Added {result.created} {'address' if result.created == 1 else 'addresses'}."
    return f"{words} {twice} of them {'was' if twice == 1 else 'were'} in the list already." if twice else words


def left_over(typed: list[str], result: EntriesResult) -> dict[str, Any]:
    """What could not be added, back in the box."""
    bad = [(typed[one.index], one.error.detail) for one in result.results if one.error is not None]
    said = "; ".join(f"{url[:60]}: {why}" for url, why in bad[:3])
    return {"values": {"urls": "\n".join(url for url, _ in bad)}, "errors": {"urls": said}}
