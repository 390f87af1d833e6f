"""Conditions of rules in Shlink's words, for its clients and its data. Pure.

    {"type": "query-param", "matchKey": "utm_source", "matchValue": "mail"}

Ours hold a list of values for most traits, of which one is enough. Shlink's hold one value each,
so several rules of Shlink may be needed for one of ours (`format_conditions`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

from pydantic import ValidationError

from refract.links.rules.schemas import RuleConditions
from refract.records.errors import BadRecord
from refract.records.values import parse_moment, to_plain_text

MAX_ALTERNATIVES: Final = 100
"""Rules of Shlink that one of ours may become."""

_DEVICES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "android": ("systems", ("android",)),
    "ios": ("systems", ("ios",)),
    "windows": ("systems", ("windows",)),
    "macos": ("systems", ("macos",)),
    "linux": ("systems", ("linux",)),
    "mobile": ("devices", ("mobile", "tablet")),
    "desktop": ("devices", ("desktop",)),
}
"""Shlink's devices. Its `chromeos` is one of our other systems."""
_BROWSERS: Final = frozenset({"chrome", "edge", "firefox", "opera", "safari"})
_SYSTEMS: Final = frozenset(values[0] for field, values in _DEVICES.values() if field == "systems")

ShlinkCondition = dict[str, Any]


class UnsupportedCondition(Exception):
    """A condition that the other system does not know. The message names it."""


def parse_conditions(conditions: Iterable[Any]) -> dict[str, Any]:
    """Return the conditions of one of Shlink's rules as `RuleConditions` are stored.

    Raises `UnsupportedCondition` if one of them, or their combination, has no equivalent here.
    """
    found: dict[str, Any] = {}
    for condition in conditions:
        if not isinstance(condition, Mapping):
            raise UnsupportedCondition(str(condition)[:40])
        _add_condition(found, condition)
    if not found:
        raise UnsupportedCondition("no condition")
    try:
        return RuleConditions.model_validate(found).to_json()
    except ValidationError as exc:
        raise UnsupportedCondition(_name_conditions(conditions)) from exc


def format_conditions(conditions: Mapping[str, Any]) -> list[list[ShlinkCondition]]:
    """Return the conditions of Shlink's rules that together match what one of ours does.

    Raises `UnsupportedCondition` if there are none, or too many.
    """
    parts: list[list[list[ShlinkCondition]]] = []
    size = 1
    for name, value in conditions.items():
        alternatives = _FORMATS.get(name, _refuse)(name, value)
        size *= len(alternatives)
        if size > MAX_ALTERNATIVES:
            raise UnsupportedCondition(name)
        parts.append(alternatives)
    return [[condition for part in choice for condition in part] for choice in product(*parts)]


def _add_condition(found: dict[str, Any], condition: Mapping[str, Any]) -> None:
    kind, key, value = (_get_text(condition, name) for name in ("type", "matchKey", "matchValue"))
    described = " ".join(filter(None, (kind, key, value)))[:80]
    match kind:
        case "device" if value.lower() in _DEVICES:
            field, values = _DEVICES[value.lower()]
            _narrow(found, field, values, described)
        case "browser" if value.lower() in _BROWSERS:
            _narrow(found, "browsers", (value.lower(),), described)
        case "geolocation-country-code" if value:
            _narrow(found, "countries", (value.upper(),), described)
        case "language" if value:
            _narrow_language(found, value.replace("_", "-").lower(), described)
        case "query-param" | "any-value-query-param" | "valueless-query-param" if key:
            wanted = {"any-value-query-param": None, "valueless-query-param": ""}.get(kind, value)
            found.setdefault("query", []).append({"name": key, "value": wanted})
        case "after-date" | "before-date" if value:
            _narrow_time(found, kind.removesuffix("-date"), value, described)
        case _:
            raise UnsupportedCondition(described)


def _get_text(condition: Mapping[str, Any], name: str) -> str:
    try:
        return to_plain_text(condition.get(name)).strip()
    except BadRecord as exc:
        raise UnsupportedCondition(f"{name}: {exc}") from exc


def _narrow(found: dict[str, Any], field: str, values: Sequence[str], described: str) -> None:
    """Keep the values that earlier conditions of the rule also allow: all of them must hold."""
    both = [value for value in found.get(field, values) if value in values]
    if not both:
        raise UnsupportedCondition(described)
    found[field] = both


def _narrow_language(found: dict[str, Any], language: str, described: str) -> None:
    """Keep the narrower of two languages. Two different ones are more than we can ask for."""
    (known,) = found.get("languages", (language,))
    narrower, wider = sorted((known, language), key=len, reverse=True)
    if not f"{narrower}-".startswith(f"{wider}-"):
        raise UnsupportedCondition(described)
    found["languages"] = [narrower]


def _narrow_time(found: dict[str, Any], field: str, value: str, described: str) -> None:
    try:
        moment = parse_moment(value, field)
    except BadRecord as exc:
        raise UnsupportedCondition(described) from exc
    if moment is None:
        raise UnsupportedCondition(described)
    choose: Callable[..., Any] = max if field == "after" else min
    found[field] = choose(moment, found.get(field, moment))


def _name_conditions(conditions: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        " ".join(
            str(condition[name])
            for name in ("type", "matchKey", "matchValue")
            if condition.get(name)
        )
        for condition in conditions
    )[:80]


def _build(kind: str, value: str | None, key: str | None = None) -> ShlinkCondition:
    return {"type": kind, "matchKey": key, "matchValue": value}


def _refuse(name: str, _value: Any) -> list[list[ShlinkCondition]]:
    raise UnsupportedCondition(name)


def _format_devices(name: str, devices: Sequence[str]) -> list[list[ShlinkCondition]]:
    """Return the devices. Shlink's `mobile` includes tablets, and it has no bots."""
    given = set(devices)
    handhelds = given & {"mobile", "tablet"}
    if "bot" in given or len(handhelds) == 1:
        raise UnsupportedCondition(f"{name} {', '.join(devices)}")
    kinds = (["desktop"] if "desktop" in given else []) + (["mobile"] if handhelds else [])
    return [[_build("device", kind)] for kind in kinds]


def _format_values(
    kind: str, allowed: frozenset[str] | None = None
) -> Callable[[str, Sequence[str]], list[list[ShlinkCondition]]]:
    def format_values(name: str, values: Sequence[str]) -> list[list[ShlinkCondition]]:
        unknown = [value for value in values if allowed is not None and value not in allowed]
        if unknown:
            raise UnsupportedCondition(f"{name} {unknown[0]}")
        return [[_build(kind, value)] for value in values]

    return format_values


def _format_query(_name: str, query: Sequence[Mapping[str, Any]]) -> list[list[ShlinkCondition]]:
    kinds: Mapping[str | None, str] = {None: "any-value-query-param", "": "valueless-query-param"}
    return [
        [
            _build(kinds.get(value, "query-param"), value or None, condition["name"])
            for condition in query
            for value in [condition.get("value")]
        ]
    ]


def _format_time(name: str, value: str) -> list[list[ShlinkCondition]]:
    moment = parse_moment(value, name)
    text = None if moment is None else moment.isoformat(timespec="seconds")
    return [[_build(f"{name}-date", text)]]


_FORMATS: Final[Mapping[str, Callable[[str, Any], list[list[ShlinkCondition]]]]] = {
    "devices": _format_devices,
    "systems": _format_values("device", _SYSTEMS),
    "browsers": _format_values("browser", _BROWSERS),
    "countries": _format_values("geolocation-country-code"),
    "languages": _format_values("language"),
    "query": _format_query,
    "after": _format_time,
    "before": _format_time,
}
