"""Campaign parameters of a destination."""

import pytest

from refract.links.campaigns.parameters import read_campaign, set_campaign


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("https://a.example/", {"utm_source": "news"}, "https://a.example/?utm_source=news"),
        (
            "https://a.example/?a=1#b",
            {"utm_term": "x y"},
            "https://a.example/?a=1&utm_term=x%20y#b",
        ),
        (
            "https://a.example/?utm_source=old&q={1}",
            {"utm_source": "n&w"},
            "https://a.example/?utm_source=n%26w&q={1}",
        ),
        ("https://a.example/?utm_source=old", {"utm_source": ""}, "https://a.example/"),
        (
            "https://a.example/?utm_source=1&b&utm_source=2#x",
            {"utm_source": "3"},
            "https://a.example/?utm_source=3&b#x",
        ),
        ("a.example/{1}", {"utm_source": "{2}", "utm_medium": ""}, "a.example/{1}?utm_source={2}"),
    ],
)  # fmt: skip
def test_only_the_named_parameters_change(before: str, changes: dict[str, str], after: str) -> None:
    assert set_campaign(before, changes) == after
    assert {key: read_campaign(after).get(key, "") for key in changes} == changes


def test_what_was_written_is_read_again() -> None:
    campaign = {"utm_source": "Grüße & more", "utm_campaign": "50% off + #1"}
    url = set_campaign("https://a.example/?utm_id=7", campaign)

    assert read_campaign(url) == campaign
    assert read_campaign(url.replace("%20", "+")) == campaign
    assert set_campaign(url, dict.fromkeys(campaign, "")) == "https://a.example/?utm_id=7"
