"""Rules in words, and the visitors they are tried with."""

import pytest

from refract.links.pages.rule_forms import AGENTS, CONDITION_LABELS, describe_visitor
from refract.links.rules.schemas import RuleConditions
from refract.redirect.visitors import AgentTraits, classify_agent
from refract.web.i18n import LANGUAGES, use_locale


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


def test_the_share_of_a_visitor_is_written_as_the_language_does() -> None:
    """It was 64.43% in every language."""
    said = []
    for tag in ("en", "de"):
        with use_locale(LANGUAGES[tag]):
            said.append(describe_visitor("share", "64.43"))

    assert said == ["64.43%", "64,43\N{NO-BREAK SPACE}%"]


def test_the_system_of_a_visitor_is_not_the_choice_of_a_theme() -> None:
    """Both were "follow the system" in Chinese."""
    with use_locale(LANGUAGES["zh-Hans"]):
        assert str(CONDITION_LABELS["systems"]) == "操作系统"
