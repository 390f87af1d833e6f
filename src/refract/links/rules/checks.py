"""Checks of the rules of a link."""

from collections.abc import Mapping, Sequence
from typing import Any

from refract.core.errors import FieldError, RefractError
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.links.enums import FlagReason
from refract.links.errors import RulesTooLong, UnknownRule
from refract.links.rules.document import (
    MAX_DOCUMENT_BYTES,
    LinkRule,
    format_rules,
    get_next_number,
    parse_rules,
)
from refract.links.rules.schemas import LinkRuleIn
from refract.links.safety.errors import InvalidUrl
from refract.links.safety.service import CheckedDestination, check_destinations

NEW_RULE = 0


class CheckedRules:
    """The rules of a request with checked destinations. `number` is `NEW_RULE` for new ones."""

    def __init__(self, rules: Sequence[LinkRule], *, unchecked: bool) -> None:
        self.rules = tuple(rules)
        self.unchecked = unchecked
        """Whether the safety check failed for one and must be repeated."""

    def number_rules(self, current: str | None) -> str | None:
        """Return the column of these rules for a link with the `current` one.

        Raises `UnknownRule` for a number that no rule of the link has.
        """
        known = {rule.number for rule in parse_rules(current)}
        following, numbered = get_next_number(current), []
        for rule in self.rules:
            if rule.number == NEW_RULE:
                numbered.append(LinkRule(following, rule.destination, rule.conditions))
                following += 1
                continue
            if rule.number not in known:
                raise UnknownRule(number=rule.number)
            known.discard(rule.number)
            numbered.append(rule)
        text = format_rules(numbered, following)
        if text is not None and len(text.encode()) > MAX_DOCUMENT_BYTES:
            raise RulesTooLong
        return text


async def check_rules(rt: Runtime, rules: Sequence[LinkRuleIn]) -> CheckedRules:
    """Check the destinations of rules, or raise why one isn't allowed.

    This may call other services, so no transaction may be open.
    """
    verdicts = await _check_destinations(rt, [rule.destination for rule in rules])
    return CheckedRules(
        [
            LinkRule(rule.number or NEW_RULE, verdict.as_typed, rule.conditions.to_json())
            for rule, verdict in zip(rules, verdicts, strict=True)
        ],
        unchecked=any(verdict.unchecked for verdict in verdicts),
    )


async def check_rules_of_version(rt: Runtime, snapshot: Mapping[str, Any]) -> None:
    """Check the destinations in the rules of an earlier version again."""
    await _check_destinations(rt, [rule.destination for rule in parse_rules(snapshot.get("rules"))])


async def _check_destinations(rt: Runtime, destinations: Sequence[str]) -> list[CheckedDestination]:
    """Return checked destinations. No preview warns of one, so imitated hosts are refused."""
    checked = []
    for place, verdict in enumerate(await check_destinations(rt, destinations)):
        found = verdict
        if isinstance(found, CheckedDestination) and found.flag_reason is FlagReason.LOOKALIKE:
            found = InvalidUrl(reason=Phrase("The host imitates another one. Choose another URL."))
        if isinstance(found, RefractError):
            found.errors = [FieldError(f"rules.{place}.destination", found.message)]
            raise found
        checked.append(found)
    return checked
