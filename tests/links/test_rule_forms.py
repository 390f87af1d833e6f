"""Rules in words, and the visitors they are tried with."""

import pytest

from refract.links.pages.rule_forms import AGENTS, CONDITION_LABELS
from refract.links.rules.schemas import RuleConditions
from refract.redirect.visitors import AgentTraits, classify_agent


def test_every_condition_has_a_label() -> None:
    assert set(CONDITION_LABELS) == set(RuleConditions.model_fields)


@pytest.mark.parametrize(
    ("key", "traits"),
    [
        ("iphone", AgentTraits("mobile", "ios", "safari")),
        ("android", AgentTraits("mobile", "android", "chrome")),
        ("samsung", AgentTraits("mobile", "android", "samsung")),
        ("ipad", AgentTraits("tablet", "ios", "safari")),
        ("windows", AgentTraits("desktop", "windows", "edge")),
        ("macos", AgentTraits("desktop", "macos", "safari")),
        ("linux", AgentTraits("desktop", "linux", "firefox")),
        ("bot", AgentTraits("bot", "other", "other")),
    ],
)
def test_visitors_to_choose_from_are_what_they_are_called(key: str, traits: AgentTraits) -> None:
    assert classify_agent(AGENTS[key][1].encode()) == traits
