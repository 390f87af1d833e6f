"""A small evaluator of PromQL, for the expressions of our own alerts.

Two scrapes instead of a time series.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = Vector | float

_TOKEN = re.compile(
    r'\s*([a-zA-Z_:][\w:]*|\d+(?:\.\d+)?(?:e\d+)?|"[^"]*"|\[\w+\]|=~|!~|!=|==|>=|<=|[-+*/(){},<>=])'
)
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_FOLD: dict[str, Callable[[list[float]], float]] = {
    "max": max,
    "min": min,
    "sum": sum,
    "count": len,
}
_MATCH: dict[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "=~": lambda value, wanted: re.fullmatch(wanted, value) is not None,
    "!~": lambda value, wanted: re.fullmatch(wanted, value) is None,
}


@dataclass
class Scrape:
    """All samples of one moment, by name."""

    now: float
    samples: dict[str, Vector] = field(default_factory=dict)

    def add(self, text: str, **target: str) -> None:
        """Add what one node said, with the labels that Prometheus gives its target."""
        for line in text.splitlines():
            if found := _SAMPLE.match(line):
                name, labels, value = found.groups()
                of_sample = dict(_LABEL.findall(labels or "")) | target
                self.samples.setdefault(name, {})[frozenset(of_sample.items())] = float(value)


def evaluate(expression: str, before: Scrape, after: Scrape) -> Value:
    """Return the value at the second scrape; `rate` and `increase` compare it with the first."""
    parser = _Parser([token for token in _TOKEN.findall(expression) if token], before, after)
    value = parser.either()
    assert not parser.tokens, f"not understood from here: {parser.tokens}"
    return value


class _Parser:
    def __init__(self, tokens: list[str], before: Scrape, after: Scrape) -> None:
        self.tokens = tokens
        self.before = before
        self.after = after

    def take(self, *wanted: str) -> str | None:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else None

    def either(self) -> Value:
        left = self.compared()
        while self.take("or"):
            right = self.compared()
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            left = right | left
        return left

    def compared(self) -> Value:
        left = self.added()
        if (sign := self.take(*_COMPARE)) is None:
            return left
        right, holds = self.added(), _COMPARE[sign]
        assert isinstance(right, float)
        if isinstance(left, float):
            return {frozenset(): left} if holds(left, right) else {}
        return {labels: value for labels, value in left.items() if holds(value, right)}

    def added(self) -> Value:
        left = self.multiplied()
        while sign := self.take("+", "-"):
            left = _combine(operator.add if sign == "+" else operator.sub, left, self.multiplied())
        return left

    def multiplied(self) -> Value:
        left = self.atom()
        while sign := self.take("*", "/"):
            left = _combine(operator.mul if sign == "*" else _divide, left, self.atom())
        return left

    def atom(self) -> Value:
        token = self.tokens.pop(0)
        if token == "(":
            value = self.either()
            self.take(")")
            return value
        if token[0].isdigit():
            return float(token)
        if token in _FOLD:
            return self.folded(token)
        if token == "time":
            self.take("("), self.take(")")
            return self.after.now
        if token in ("rate", "increase", "absent"):
            return self.called(token)
        return self.selected(token, self.after)

    def called(self, function: str) -> Value:
        self.take("(")
        if function == "absent":
            found = self.either()
            self.take(")")
            return {} if found else {frozenset(): 1.0}
        rest = list(self.tokens)
        now = self.selected(self.tokens.pop(0), self.after)
        self.tokens = rest
        then = self.selected(self.tokens.pop(0), self.before)
        self.tokens.pop(0)  # [5m]
        self.take(")")
        return {labels: max(0.0, value - then.get(labels, 0.0)) for labels, value in now.items()}

    def folded(self, function: str) -> Value:
        by: list[str] = []
        if self.take("by"):
            self.take("(")
            while (name := self.tokens.pop(0)) != ")":
                by += [name] if name != "," else []
        self.take("(")
        vector = self.either()
        self.take(")")
        assert isinstance(vector, dict)
        groups: dict[Labels, list[float]] = {}
        for labels, value in vector.items():
            groups.setdefault(frozenset(pair for pair in labels if pair[0] in by), []).append(value)
        return {labels: float(_FOLD[function](values)) for labels, values in groups.items()}

    def selected(self, name: str, scrape: Scrape) -> Vector:
        matches: list[tuple[str, str, str]] = []
        if self.take("{"):
            while not self.take("}"):
                label, sign, value = (self.tokens.pop(0) for _ in range(3))
                matches.append((label, sign, value.strip('"')))
                self.take(",")
        found = scrape.samples.get(name, {})
        return {
            labels: value
            for labels, value in found.items()
            if all(
                _MATCH[sign](dict(labels).get(label, ""), wanted) for label, sign, wanted in matches
            )
        }


def _divide(left: float, right: float) -> float:
    return left / right if right else float("nan")


def _combine(work: Callable[[float, float], float], left: Value, right: Value) -> Value:
    if isinstance(left, float) and isinstance(right, float):
        return work(left, right)
    if isinstance(left, float):
        assert isinstance(right, dict)
        return {labels: work(left, value) for labels, value in right.items()}
    if isinstance(right, float):
        return {labels: work(value, right) for labels, value in left.items()}
    return {labels: work(value, right[labels]) for labels, value in left.items() if labels in right}
