"""The form of a rule, the visitor it is tried with, and rules in words."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from pydantic import ValidationError
from starlette.datastructures import FormData, QueryParams

from refract.core.errors import RefractError
from refract.links.pages.forms import parse_local_time
from refract.links.rules.document import LinkRule
from refract.web.formats import format_datetime, format_percent, get_territory_name
from refract.web.i18n import LazyText, gettext, lazy_gettext, translate_error
from refract.web.problems import list_field_errors

CONDITION_LABELS: Final = {
    "devices": lazy_gettext("Device"),
    "systems": lazy_gettext("System"),
    "browsers": lazy_gettext("Browser"),
    "countries": lazy_gettext("Country"),
    "languages": lazy_gettext("Language"),
    "query": lazy_gettext("Query parameters"),
    "referrers": lazy_gettext("Referrer"),
    "after": lazy_gettext("From"),
    "before": lazy_gettext("Until"),
    "hours": lazy_gettext("Weekly hours"),
    "share": lazy_gettext("Share of visitors"),
}
Labels = Mapping[str, LazyText | str]
DEVICE_LABELS: Final[Labels] = {
    "desktop": lazy_gettext("Desktop"),
    "mobile": lazy_gettext("Mobile"),
    "tablet": lazy_gettext("Tablet"),
    "bot": lazy_gettext("Bot"),
}
SYSTEM_LABELS: Final[Labels] = {
    "android": "Android",
    "ios": "iOS",
    "macos": "macOS",
    "windows": "Windows",
    "linux": "Linux",
    "other": lazy_gettext("Other"),
}
BROWSER_LABELS: Final[Labels] = {
    "chrome": "Chrome",
    "edge": "Edge",
    "firefox": "Firefox",
    "opera": "Opera",
    "safari": "Safari",
    "samsung": "Samsung Internet",
    "other": lazy_gettext("Other"),
}
DAY_LABELS: Final[Labels] = {
    "mon": lazy_gettext("Mon"),
    "tue": lazy_gettext("Tue"),
    "wed": lazy_gettext("Wed"),
    "thu": lazy_gettext("Thu"),
    "fri": lazy_gettext("Fri"),
    "sat": lazy_gettext("Sat"),
    "sun": lazy_gettext("Sun"),
}
CHOICES: Final = {
    "devices": DEVICE_LABELS,
    "systems": SYSTEM_LABELS,
    "browsers": BROWSER_LABELS,
    "days": DAY_LABELS,
}
"""The values of fields with several ticks."""
PROPOSED_HOURS: Final = ("09:00", "17:00")
_LISTS: Final = ("countries", "languages", "referrers")
_MOMENTS: Final = ("after", "before")
_FORM_FIELDS: Final = {
    "query": "parameters",
    "number": "destination",
    "body": "destination",  # a rule without conditions
    "": "after",  # times in the wrong order
}

_WEBKIT: Final = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_BLINK: Final = "AppleWebKit/537.36 (KHTML, like Gecko)"
AGENTS: Final[Mapping[str, tuple[LazyText | str, str]]] = {
    "iphone": (
        "iPhone · Safari",
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {_WEBKIT}"
            " Version/17.5 Mobile/15E148 Safari/604.1"
        ),
    ),
    "android": (
        "Android · Chrome",
        f"Mozilla/5.0 (Linux; Android 14; Pixel 8) {_BLINK} Chrome/126.0.0.0 Mobile Safari/537.36",
    ),
    "samsung": (
        "Android · Samsung Internet",
        (
            f"Mozilla/5.0 (Linux; Android 14; SM-S921B) {_BLINK}"
            " SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36"
        ),
    ),
    "ipad": (
        "iPad · Safari",
        (
            f"Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) {_WEBKIT}"
            " Version/17.5 Mobile/15E148 Safari/604.1"
        ),
    ),
    "windows": (
        "Windows · Edge",
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_BLINK}"
            " Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0"
        ),
    ),
    "macos": (
        "macOS · Safari",
        f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_WEBKIT} Version/17.5 Safari/605.1.15",
    ),
    "linux": (
        "Linux · Firefox",
        "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
    ),
    "bot": (
        lazy_gettext("Bot"),
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    ),
}
"""Visitors to choose from: what they are called, and their User-Agent header."""
VISITOR_FIELDS: Final = ("agent", "country", "language", "referrer", "query", "at", "seed")
MAX_VISITOR_TEXT: Final = 200


def read_rule(form: FormData | QueryParams) -> dict[str, Any]:
    """Return the fields of a rule as typed: texts, and lists for checkboxes."""
    values: dict[str, Any] = {
        name: text
        for name, text in form.multi_items()
        if isinstance(text, str) and name != "csrf" and name not in CHOICES
    }
    return values | {name: [str(value) for value in form.getlist(name)] for name in CHOICES}


def build_values(rule: LinkRule) -> dict[str, Any]:
    """Return a stored rule as the fields of its form."""
    kept = rule.conditions
    values: dict[str, Any] = {"destination": rule.destination}
    values |= {name: kept.get(name, []) for name in CHOICES}
    values |= {name: ", ".join(kept.get(name, [])) for name in _LISTS}
    values |= {name: kept[name][:16] for name in _MOMENTS if name in kept}
    values["parameters"] = ", ".join(map(format_parameter, kept.get("query", [])))
    values["share"] = str(kept.get("share", ""))
    return values | dict(kept.get("hours", {}))


def parse_rule(values: Mapping[str, Any], number: int | None) -> dict[str, Any]:
    """Return the rule of a form as the API takes it. What is blank is no condition."""
    conditions: dict[str, Any] = {name: values[name] for name in CHOICES if name != "days"}
    conditions |= {name: split_words(values.get(name, "")) for name in _LISTS}
    conditions["query"] = [
        parse_parameter(word) for word in split_words(values.get("parameters", ""))
    ]
    for name in _MOMENTS:
        moment = parse_local_time(values.get(name, ""), values.get(f"{name}_zone", ""))
        conditions[name] = moment.isoformat() if isinstance(moment, datetime) else moment
    if values["days"] or _has_hours(values):
        conditions["hours"] = {
            name: values.get(name, "").strip() for name in ("begin", "end", "zone")
        } | {"days": values["days"]}
    if share := values.get("share", "").strip():
        conditions["share"] = share if not share.isascii() or not share.isdecimal() else int(share)
    return {
        "number": number,
        "destination": values.get("destination", "").strip(),
        "conditions": conditions,
    }


def _has_hours(values: Mapping[str, Any]) -> bool:
    """Return whether hours are typed: another time than the form proposes, or a time zone."""
    typed = tuple(values.get(name, "").strip() for name in ("begin", "end"))
    return bool(values.get("zone", "").strip()) or typed not in {("", ""), PROPOSED_HOURS}


def map_rule_errors(problem: ValidationError | RefractError) -> dict[str, str]:
    """Return messages by field of the form. One that concerns no field is at the destination."""
    if isinstance(problem, RefractError):
        return {"destination": translate_error(problem)}
    return {
        _find_field(error.field): error.message for error in list_field_errors(problem.errors())
    }


def _find_field(place: str) -> str:
    """Return the field of the form for a place in a rule, such as `conditions.countries.0`."""
    names = place.removeprefix("conditions").strip(".").split(".")
    name = names[1] if names[0] == "hours" and len(names) > 1 else names[0]
    return _FORM_FIELDS.get(name, name)


def split_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_parameter(word: str) -> dict[str, str | None]:
    """Return a query parameter: `name` with any value, or `name=value`."""
    name, equals, value = word.partition("=")
    return {"name": name.strip(), "value": value.strip() if equals else None}


def format_parameter(condition: Mapping[str, Any]) -> str:
    value = condition.get("value")
    return condition["name"] if value is None else f"{condition['name']}={value}"


def describe_conditions(conditions: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the conditions of a rule in words: what each is about, and its values."""
    return [
        (str(CONDITION_LABELS[name]), _describe_value(name, value))
        for name, value in conditions.items()
        if name in CONDITION_LABELS
    ]


def _describe_value(name: str, value: Any) -> str:
    if name in CHOICES:
        return ", ".join(str(CHOICES[name].get(word, word)) for word in value)
    return _FORMATTERS[name](value)


def _describe_hours(hours: Mapping[str, Any]) -> str:
    days = ", ".join(str(DAY_LABELS[day]) for day in hours["days"])
    return f"{days} · {hours['begin']}–{hours['end']} · {hours['zone']}"


_FORMATTERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "countries": lambda codes: ", ".join(get_territory_name(code) or code for code in codes),
    "languages": ", ".join,
    "referrers": ", ".join,
    "query": lambda wanted: ", ".join(map(format_parameter, wanted)),
    "after": lambda moment: format_datetime(datetime.fromisoformat(moment)),
    "before": lambda moment: format_datetime(datetime.fromisoformat(moment)),
    "hours": _describe_hours,
    "share": lambda percent: format_percent(percent / 100),
}


def describe_visitor(name: str, text: str) -> str:
    """Return what a condition found out about a visitor, in words."""
    if not text or text == "XX":
        return gettext("unknown") if name != "query" else gettext("none")
    if name in CHOICES:
        return str(CHOICES[name].get(text, text))
    if name == "countries":
        return get_territory_name(text) or text
    if name in {"after", "before", "hours"}:
        return format_datetime(datetime.fromisoformat(text))
    return format_percent(Decimal(text) / 100, exact=True) if name == "share" else text


def read_visitor(params: QueryParams) -> dict[str, str]:
    """Return the visitor to try rules with, as typed."""
    typed = {name: params.get(name, "")[:MAX_VISITOR_TEXT] for name in VISITOR_FIELDS}
    return typed | {"at_zone": params.get("at_zone", "0")[:6]}
