"""Rules as a column of their link keeps them. Pure.

    {"next": 4, "rules": [{"number": 2, "destination": "https://…", "conditions": {…}}, …]}

A number is never given to another rule of the same link: clicks carry it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_RULES: Final = 20
MAX_DOCUMENT_BYTES: Final = 60_000
"""Fits a text column of every database."""


@dataclass(frozen=True, slots=True)
class LinkRule:
    """A rule. All of its conditions must hold; their shape is that of `RuleConditions`."""

    number: int
    destination: str
    conditions: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "destination": self.destination,
            "conditions": dict(self.conditions),
        }


def parse_rules(text: str | None) -> tuple[LinkRule, ...]:
    """Return the rules of a link, in the order in which they are tried."""
    if not text:
        return ()
    return tuple(
        LinkRule(int(rule["number"]), str(rule["destination"]), rule["conditions"])
        for rule in json.loads(text)["rules"]
    )


def get_next_number(text: str | None) -> int:
    """Return the number of the next new rule of a link."""
    return int(json.loads(text)["next"]) if text else 1


def format_rules(rules: Sequence[LinkRule], next_number: int = 1) -> str | None:
    """Return the column of these rules. It is empty if the link never had any."""
    following = max((next_number, *(rule.number + 1 for rule in rules)))
    if following == 1:
        return None
    document = {"next": following, "rules": [rule.to_json() for rule in rules]}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def restore_rules(current: str | None, earlier: str | None) -> str | None:
    """Return the column of earlier rules. Numbers given since then are not given again."""
    return format_rules(parse_rules(earlier), max(map(get_next_number, (current, earlier))))
