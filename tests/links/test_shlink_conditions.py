"""Conditions of rules in Shlink's words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.links.rules.schemas import RuleConditions
from refract.links.rules.shlink import (
    MAX_ALTERNATIVES,
    UnsupportedCondition,
    format_conditions,
    parse_conditions,
)


def make_condition(kind: str, value: str | None, key: str | None = None) -> dict[str, Any]:
    return {"type": kind, "matchKey": key, "matchValue": value}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (make_condition("device", "android"), {"systems": ["android"]}),
        (make_condition("device", "ios"), {"systems": ["ios"]}),
        (make_condition("device", "mobile"), {"devices": ["mobile", "tablet"]}),
        (make_condition("device", "desktop"), {"devices": ["desktop"]}),
        (make_condition("device", "macos"), {"systems": ["macos"]}),
        (make_condition("browser", "firefox"), {"browsers": ["firefox"]}),
        (make_condition("language", "en_US"), {"languages": ["en-us"]}),
        (make_condition("geolocation-country-code", "AT"), {"countries": ["AT"]}),
        (
            make_condition("query-param", "mail", "from"),
            {"query": [{"name": "from", "value": "mail"}]},
        ),
        (
            make_condition("any-value-query-param", None, "from"),
            {"query": [{"name": "from", "value": None}]},
        ),
        (
            make_condition("valueless-query-param", None, "from"),
            {"query": [{"name": "from", "value": ""}]},
        ),
        (
            make_condition("before-date", "2026-12-24T18:00:00+01:00"),
            {"before": "2026-12-24T17:00:00Z"},
        ),
    ],
)
def test_a_condition_of_shlink_becomes_one_of_ours(
    theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    assert parse_conditions([theirs]) == ours


def test_all_conditions_of_a_rule_must_hold() -> None:
    found = parse_conditions(
        [
            make_condition("device", "ios"),
            make_condition("language", "de"),
            make_condition("language", "de-AT"),
            make_condition("after-date", "2026-01-01T00:00:00+00:00"),
            make_condition("after-date", "2026-02-01T00:00:00+00:00"),
            make_condition("query-param", "1", "a"),
            make_condition("any-value-query-param", None, "b"),
        ]
    )

    assert found == {
        "systems": ["ios"],
        "languages": ["de-at"],
        "after": "2026-02-01T00:00:00Z",
        "query": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    }


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ([make_condition("ip-address", "192.0.2.0/24")], "ip-address 192.0.2.0/24"),
        ([make_condition("geolocation-city-name", "Graz")], "geolocation-city-name Graz"),
        ([make_condition("device", "chromeos")], "device chromeos"),
        ([make_condition("browser", "android_browser")], "browser android_browser"),
        ([make_condition("device", "ios"), make_condition("device", "linux")], "device linux"),
        ([make_condition("language", "de"), make_condition("language", "den")], "language den"),
        ([make_condition("language", "!")], "language !"),
        ([make_condition("before-date", "soon")], "before-date soon"),
        ([make_condition("query-param", "1", None)], "query-param 1"),
        ([make_condition("moon-phase", "full")], "moon-phase full"),
        (["device"], "device"),
        ([], "no condition"),
        ([{"type": ["device"]}], "type: Expected text, found ['device']."),
    ],
)
def test_what_has_no_equivalent_is_named(conditions: list[Any], named: str) -> None:
    with pytest.raises(UnsupportedCondition) as refused:
        parse_conditions(conditions)

    assert str(refused.value) == named


def test_one_rule_of_ours_may_be_several_of_shlink() -> None:
    found = format_conditions({"systems": ["ios", "android"], "countries": ["AT", "DE"]})

    assert [[condition["matchValue"] for condition in rule] for rule in found] == [
        ["ios", "AT"],
        ["ios", "DE"],
        ["android", "AT"],
        ["android", "DE"],
    ]


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ({"share": 50}, "share"),
        ({"referrers": ["example.com"]}, "referrers"),
        ({"devices": ["tablet"]}, "devices tablet"),
        ({"devices": ["bot"]}, "devices bot"),
        ({"systems": ["ios", "other"]}, "systems other"),
        ({"browsers": ["samsung"]}, "browsers samsung"),
        ({"countries": ["AT"] * 60, "languages": ["de", "en"]}, "languages"),
    ],
)
def test_what_shlink_does_not_know_is_named(conditions: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedCondition) as refused:
        format_conditions(conditions)

    assert str(refused.value) == named


def _list_of(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=1)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "devices": st.sampled_from([["desktop"], ["mobile", "tablet"]]),
            "systems": _list_of(["android", "ios", "macos", "windows", "linux"]),
            "browsers": _list_of(["chrome", "edge", "firefox", "opera", "safari"]),
            "countries": _list_of(["AT", "DE", "US"]),
            "languages": _list_of(["de", "de-at", "en"]),
            "query": st.lists(
                st.fixed_dictionaries(
                    {
                        "name": st.sampled_from(["a", "b"]),
                        "value": st.sampled_from([None, "", "1", "two words"]),
                    }
                ),
                min_size=1,
                max_size=3,
            ),
            "after": st.just("2026-01-01T00:00:00Z"),
            "before": st.just("2027-01-01T00:00:00Z"),
        },
    ).filter(bool)
)
def test_conditions_come_back_as_they_were(conditions: dict[str, Any]) -> None:
    stored = RuleConditions.model_validate(conditions).to_json()

    (theirs,) = format_conditions(stored)

    assert parse_conditions(theirs) == stored
    assert len(theirs) <= MAX_ALTERNATIVES
