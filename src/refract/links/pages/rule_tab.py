"""The tab of a link's rules: the rules, the form of one, and which one decides for a visitor."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from math import sqrt
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request

from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, complete_url
from refract.links.golinks.template import parse_template
from refract.links.models import Link
from refract.links.pages.forms import parse_local_time
from refract.links.pages.rule_forms import (
    AGENTS,
    CHOICES,
    CONDITION_LABELS,
    PROPOSED_HOURS,
    VISITOR_FIELDS,
    build_values,
    describe_conditions,
    describe_visitor,
    map_rule_errors,
    parse_rule,
    read_rule,
    read_visitor,
)
from refract.links.queries import LinkCard
from refract.links.rules.checks import NEW_RULE
from refract.links.rules.document import MAX_RULES, LinkRule, parse_rules
from refract.links.rules.schemas import LinkRuleIn
from refract.web.formats import list_territories
from refract.web.i18n import gettext, translate
from refract.web.return_path import get_referring_path

RuleExplainer = Callable[
    [Request, Runtime, str, Mapping[str, Any], str, LinkRule | None],
    Awaitable[dict[str, Any] | None],
]
"""Return which rule of a link decides for a visitor, and why. `refract.registry` names it.

A rule that isn't saved yet, or not like this, may be tried as well.
"""
NEW: Final = "new"
"""What the page calls the form of a rule that does not exist yet."""
_AGENT_NAMES: Final = [(key, name) for key, (name, _) in AGENTS.items()]
EMPTY: Final[dict[str, Any]] = {
    **{name: [] for name in CHOICES},
    "begin": PROPOSED_HOURS[0],
    "end": PROPOSED_HOURS[1],
}
_NORMAL_QUANTILE: Final = 1.96
"""Of 95 percent, two-sided."""


def build_editor(request: Request, link: Link) -> dict[str, Any]:
    """Return the rules in words, and the fields of the one that is open."""
    rules = parse_rules(link.rules)
    opened = find_opened(request.query_params.get("rule", ""), rules)
    values = next((build_values(rule) for rule in rules if str(rule.number) == opened), {})
    return {
        "rules": [_describe_rule(rule) for rule in rules],
        "opened": opened,
        "rule_values": EMPTY | values,
        "is_full": len(rules) >= MAX_RULES,
        "max_rules": MAX_RULES,
        "choices": {name: list(labels.items()) for name, labels in CHOICES.items()},
    }


def list_visitor_fields(params: QueryParams) -> dict[str, str]:
    """Return the fields of the chosen visitor that are filled in, and the rule that is open."""
    return {name: params[name] for name in (*VISITOR_FIELDS, "at_zone", "rule") if params.get(name)}


def find_opened(asked: str, rules: tuple[LinkRule, ...]) -> str:
    """Return the rule whose form is open: its number, `new`, or nothing."""
    known = {NEW, *(str(rule.number) for rule in rules)}
    return asked if asked in known else ""


def _describe_rule(rule: LinkRule) -> dict[str, Any]:
    return {
        "number": rule.number,
        "destination": rule.destination,
        "conditions": describe_conditions(rule.conditions),
    }


def describe_clicks(link: Link, counted: Mapping[str, int]) -> dict[str, Any]:
    """Return the clicks of each rule, its part of all, and between which bounds that part is."""
    total = sum(counted.values())
    numbers = [str(rule.number) for rule in parse_rules(link.rules)]
    clicks = {number: counted.get(number, 0) for number in numbers}
    return {
        "rule_clicks": {number: _describe_part(count, total) for number, count in clicks.items()},
        "other_clicks": _describe_part(total - sum(clicks.values()), total),
    }


def _describe_part(clicks: int, total: int) -> dict[str, Any]:
    low, high = estimate_share(clicks, total)
    return {
        "clicks": clicks,
        "share": clicks / total if total else 0.0,
        "low": low,
        "high": high,
    }


def estimate_share(clicks: int, total: int) -> tuple[float, float]:
    """Return the bounds between which a share is with 95 percent confidence (Wilson's score)."""
    if not total:
        return 0.0, 1.0
    share, spread = clicks / total, _NORMAL_QUANTILE**2 / total
    middle = share + spread / 2
    reach = _NORMAL_QUANTILE * sqrt(share * (1 - share) / total + spread / total / 4)
    low, high = (middle - reach) / (1 + spread), (middle + reach) / (1 + spread)
    return max(0.0, low), min(1.0, high)


async def load_explanation(request: Request, rt: Runtime, card: LinkCard) -> dict[str, Any]:
    """Return the chosen visitor, and what each rule says about them, also the one that is open."""
    params = request.query_params
    if request.method == "POST":  # a form that is shown again
        params = QueryParams(urlsplit(get_referring_path(request, rt, "")).query)
    typed = read_visitor(params)
    errors: dict[str, str] = {}
    decision = draft = None
    draft_problem = ""
    if "destination" in params:
        try:
            draft = _read_draft(params, card.link)
        except ValidationError as exc:
            draft_problem = next(iter(map_rule_errors(exc).values()))
        except BadUrl as exc:
            draft_problem = translate(str(exc))
    explain: RuleExplainer = request.app.state.explain_link
    if card.link.rules or draft is not None:
        try:
            visitor = _build_visitor(request, typed)
            query = typed["query"].removeprefix("?")
            decision = await explain(request, rt, card.text, visitor, query, draft)
        except ValidationError as exc:
            errors = map_rule_errors(exc)
    return {
        "visitor": typed,
        "visitor_errors": errors,
        "visitor_query": urlencode({name: typed[name] for name in VISITOR_FIELDS if typed[name]}),
        "agents": [
            ("", gettext("Your browser")),
            *((key, name) for key, (name, _) in AGENTS.items()),
        ],
        "countries": [("", gettext("Unknown")), *list_territories()],
        "decision": _describe_decision(decision) if decision else None,
        "draft": draft is not None,
        "draft_problem": draft_problem,
    }


def _read_draft(params: QueryParams, link: Link) -> LinkRule:
    """Return the rule whose form is open, as it is typed. Raises what is wrong with it."""
    opened = find_opened(params.get("rule", ""), parse_rules(link.rules))
    number = int(opened) if opened.isdecimal() else None
    given = LinkRuleIn.model_validate(parse_rule(read_rule(params), number))
    destination = complete_url(given.destination)
    parse_template(destination)
    return LinkRule(number or NEW_RULE, destination, given.conditions.to_json())


def _build_visitor(request: Request, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the visitor as the API takes it. What isn't typed is that of this browser."""
    agent = AGENTS.get(typed["agent"])
    referrer = typed["referrer"].strip()
    at = parse_local_time(typed["at"], typed["at_zone"])
    return {
        "agent": agent[1] if agent else request.headers.get("user-agent", "")[:2000],
        "languages": typed["language"].strip(),
        "country": typed["country"] or None,
        "referrer": referrer if "://" in referrer or not referrer else f"https://{referrer}/",
        "at": at.isoformat() if isinstance(at, datetime) else at,
        "seed": typed["seed"],
    }


def _describe_decision(decision: dict[str, Any]) -> dict[str, Any]:
    """Return a decision in words, with the place of each rule."""
    rules = [
        rule
        | {
            "place": place,
            "decides": rule["number"] == decision["rule"],
            "conditions": [
                {
                    "label": str(CONDITION_LABELS.get(said["condition"], said["condition"])),
                    "matched": said["matched"],
                    "visitor": describe_visitor(said["condition"], said["visitor"]),
                }
                for said in rule["conditions"]
            ],
        }
        for place, rule in enumerate(decision["rules"], 1)
    ]
    return {
        "rules": rules,
        "chosen": next((rule for rule in rules if rule["decides"]), None),
    }
