"""`refract links rules` and `refract explain`."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_links import ok, refused

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like"
    " Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
)
RULES = [
    {"destination": "https://apps.example.com/ios", "conditions": {"systems": ["ios"]}},
    {
        "destination": "https://example.com/at",
        "conditions": {"languages": ["de"], "countries": ["at"]},
    },
    {"destination": "https://example.com/new", "conditions": {"share": 50}},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": RULES}))
    return path


@pytest.fixture
def shop(run: Run) -> Run:
    """A link named `shop` without rules."""
    ok(run("shorten", "https://example.com/", "--name", "shop"))
    return run


def stored(run: Run) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = json.loads(ok(run("links", "rules", "show", "shop", "--json")))[
        "rules"
    ]
    return rules


def test_rules_are_set_shown_and_cleared(shop: Run, file: Path) -> None:
    nothing = "No rules: everyone gets the destination of the link.\n"
    assert ok(shop("links", "rules", "show", "shop")) == nothing
    listed = (
        "1. https://apps.example.com/ios\n   systems: ios\n"
        "2. https://example.com/at\n   countries: AT\n   languages: de\n"
        "3. https://example.com/new\n   share: 50\n"
    )
    assert ok(shop("links", "rules", "set", "shop", file)) == listed
    assert ok(shop("links", "rules", "show", "https://go.test/shop")) == listed
    assert ok(shop("links", "rules", "clear", "shop")) == nothing
    assert stored(shop) == []
    ok(shop("links", "revert", "shop", "2"))
    assert [rule["number"] for rule in stored(shop)] == [1, 2, 3]


def test_shown_rules_can_be_set_again(
    shop: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(shop("links", "rules", "set", "shop", file))
    before = stored(shop)
    kept = tmp_path / "kept.json"
    kept.write_text(ok(shop("links", "rules", "show", "shop", "--json")))
    ok(shop("links", "rules", "set", "shop", kept))
    assert stored(shop) == before

    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(before[1:])))
    ok(shop("links", "rules", "set", "shop", "-"))
    assert [rule["number"] for rule in stored(shop)] == [2, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["isn't a readable JSON file"]),
        ('{"rules": ', ["isn't a readable JSON file"]),
        ("[" * 100_000, ["isn't a readable JSON file"]),
        ("{}", ["rules"]),
        ("3", ["rules"]),
        ('[{"destination": "https://a.example/"}]', ["rules.0.conditions"]),
        (
            '[{"destination": "https://a.example/", "conditions": {}}]',
            ["rules.0", "at least one condition"],
        ),
        (
            '[{"destination": "https://a.example/", "conditions": {"devices": ["fridge"]}}]',
            ["rules.0.conditions.devices.0"],
        ),
        (
            '[{"destination": "ftp://a.example/", "conditions": {"share": 5}}]',
            ["rules.0.destination", "http"],
        ),
        (
            '[{"number": 7, "destination": "https://a.example/", "conditions": {"share": 5}}]',
            ["7"],
        ),
    ],
)
def test_bad_files_end_in_one_sentence(shop: Run, file: Path, text: str, words: list[str]) -> None:
    file.write_text(text)
    ran = shop("links", "rules", "set", "shop", file)
    assert (ran.code in (1, 2), ran.out, ran.err.count("\n")) == (True, "", 1), ran
    assert all(word in ran.err for word in words), ran.err
    assert stored(shop) == []


def test_files_and_links_that_are_missing(shop: Run, file: Path, tmp_path: Path) -> None:
    missing = shop("links", "rules", "set", "shop", tmp_path / "none.json")
    assert (missing.out, missing.err.count("\n")) == ("", 1)
    assert "none.json" in missing.err
    file.write_bytes(b"\xff\xfe{}")
    assert "isn't a readable JSON file" in shop("links", "rules", "set", "shop", file).err
    file.write_text(json.dumps(RULES))
    for words in (("show", "nope"), ("set", "nope", file), ("clear", "nope")):
        refused(shop("links", "rules", *words), "nope")
    refused(shop("links", "rules", "show", "shop", "--user", "no@example.com"), "no@example.com")


def test_explain_says_what_decides(shop: Run, file: Path) -> None:
    assert ok(shop("explain", "/shop")) == "The link decides: https://example.com/\n"
    ok(shop("links", "rules", "set", "shop", file))
    told = ok(shop("explain", "/shop", "--agent", IPHONE, "--country", "at"))
    assert told.splitlines()[:5] == [
        "1. https://apps.example.com/ios: matches",
        "   + systems: the visitor has ios",
        "2. https://example.com/at: no match",
        "   + countries: the visitor has AT",
        "   - languages: the visitor has nothing",
    ]
    assert told.splitlines()[-1] == "Rule 1 decides: https://apps.example.com/ios"
    more = ["--country", "AT", "--languages", "de-AT,en;q=0.5"]
    second = ok(shop("explain", "https://go.test/shop?x=1#top", *more))
    assert second.splitlines()[-1] == "Rule 2 decides: https://example.com/at"


def test_another_seed_is_another_visitor(shop: Run, file: Path) -> None:
    file.write_text(json.dumps(RULES[2:]))
    ok(shop("links", "rules", "set", "shop", file))

    def decide(seed: int) -> int | None:
        words = ("--seed", f"visitor {seed}", "--at", "2027-03-01T12:00:00Z", "--json")
        told: dict[str, Any] = json.loads(ok(shop("explain", "shop", *words)))
        assert told["location"] == (
            "https://example.com/new" if told["rule"] else "https://example.com/"
        )
        rule: int | None = told["rule"]
        return rule

    first = [decide(seed) for seed in range(12)]
    assert set(first) == {None, 1}
    assert first == [decide(seed) for seed in range(12)]


def test_what_explain_refuses(shop: Run) -> None:
    refused(shop("explain", "nope"), "nope")
    refused(shop("explain", "shop", "--country", "Austria"), "country", code=2)
    refused(shop("explain", "shop", "--at", "soon"), "soon", code=2)
    ok(shop("links", "disable", "shop"))
    refused(shop("explain", "shop"), "shop doesn't redirect now")
