"""Decisions for pretended visitors: which rule decides, and why the others don't."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fastapi import Request

from refract.clicks.countries import UNKNOWN_COUNTRY
from refract.core.clock import EPOCH, format_utc, to_nanoseconds
from refract.core.runtime import Runtime
from refract.links.golinks.template import parse_template
from refract.links.rules.document import LinkRule
from refract.redirect.asgi import RedirectApp
from refract.redirect.resolver import RedirectTarget, TargetRule
from refract.redirect.rules import choose_rule, compile_rules
from refract.redirect.schemas import ConditionOut, PretendedVisitor, RuleResult
from refract.redirect.visitors import NUMBERS, Visitor, VisitorFacts, parse_referrer_host


def build_visitor(pretended: PretendedVisitor, query: str, now: datetime) -> Visitor:
    """Return a visitor with these headers. Their network is unknown, so the seed stands for it."""
    visitor = Visitor(
        to_nanoseconds(pretended.at or now),
        agent=_encode_header(pretended.agent),
        languages=_encode_header(pretended.languages),
        referrer=_encode_header(pretended.referrer),
        query=query.encode("utf-8", "surrogateescape"),
    )
    visitor.country = pretended.country or UNKNOWN_COUNTRY
    if pretended.seed:
        visitor.seed = _encode_header(pretended.seed)
    return visitor


def get_number(found: RedirectTarget) -> int | None:
    """Return the number of the rule that decided, or None for the destination of the link."""
    return found.chosen.number if found.chosen is not None else None


def explain_rules(found: RedirectTarget, facts: VisitorFacts, visitor: Visitor) -> list[RuleResult]:
    """Return what each rule of a link says about a visitor, in order."""
    return [
        RuleResult(
            number=compiled.rule.number,
            destination=compiled.rule.template.href if compiled.rule.template else "",
            matched=compiled.matches(visitor),
            blocked=not compiled.rule.is_active,
            conditions=[
                ConditionOut(
                    condition=name,
                    matched=check.test(visitor),
                    visitor=_describe_visitor(name, found, facts, visitor),
                )
                for name, check in compiled.checks.items()
            ],
        )
        for compiled in compile_rules(found, facts)
    ]


async def explain_link(
    request: Request,
    rt: Runtime,
    text: str,
    pretended: Mapping[str, Any],
    query: str,
    draft: LinkRule | None = None,
) -> dict[str, Any] | None:
    """Return the number of the rule that decides for a visitor of a link, and all of its rules.

    `text` is a name or code of the link. A `draft` replaces the rule with its number, or comes
    after all. The result is None if the link leads nowhere any more. Raises pydantic's error for a
    visitor that cannot be.
    """
    follow: RedirectApp = request.app.state.redirects
    asked = PretendedVisitor.model_validate(pretended)
    found = await follow.lookup.find(text)
    if found is None or found.kind != "link":
        return None
    if found.unread_rules:
        found = await follow.lookup.read_rules(found)
    if draft is not None:
        found = replace(found, rules=_put_draft(found.rules, draft))
    facts = rt.singleton(VisitorFacts)
    visitor = build_visitor(asked, query, asked.at or rt.clock.now())
    chosen = choose_rule(found, facts, visitor)
    rules = explain_rules(found, facts, visitor)
    return {
        "rule": chosen.number if chosen is not None else None,
        "rules": [rule.model_dump() for rule in rules],
    }


def _put_draft(rules: Sequence[TargetRule], draft: LinkRule) -> tuple[TargetRule, ...]:
    tried = TargetRule(draft.number, parse_template(draft.destination), draft.conditions)
    if draft.number not in {rule.number for rule in rules}:
        return (*rules, tried)
    return tuple(tried if rule.number == draft.number else rule for rule in rules)


def _describe_visitor(
    condition: str, found: RedirectTarget, facts: VisitorFacts, visitor: Visitor
) -> str:
    """Return what a condition looks at, for people."""
    describe: dict[str, Callable[[], str]] = {
        "devices": lambda: facts.agents[visitor.agent].device,
        "systems": lambda: facts.agents[visitor.agent].system,
        "browsers": lambda: facts.agents[visitor.agent].browser,
        "countries": lambda: facts.find_country(visitor),
        "languages": lambda: ", ".join(sorted(facts.languages[visitor.languages])),
        "query": lambda: visitor.query.decode("utf-8", "replace"),
        "referrers": lambda: parse_referrer_host(visitor.referrer),
        "share": lambda: f"{facts.draw_number(visitor, found.id) * 100 / NUMBERS:.2f}",
    }
    if condition in describe:
        return describe[condition]()
    return format_utc(EPOCH + timedelta(microseconds=visitor.now_ns // 1000))


def _encode_header(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
