"""Parts of the offline tier, without a database: sentences, summaries, phrases, rules, examples."""

import pytest

from refract.core.settings.model import Settings
from refract.library.enrichment.language import (
    extract_key_phrases,
    is_cjk,
    split_sentences,
    stem_words,
)
from refract.library.enrichment.offline import build_word_profile, describe_offline, suggest_tags
from refract.library.enrichment.prompt import parse_response
from refract.library.enrichment.rules import is_match, normalize_pattern
from refract.library.enrichment.summary import summarize_text, truncate_at_word
from refract.library.enrichment.types import (
    EnrichmentInput,
    ExtractedPage,
    NeighbourItem,
    TaggingRule,
    UserBackground,
)
from refract.library.errors import InvalidRule

ENGLISH = (
    "Dr. Watt built a separate condenser in 1765. The condenser let the cylinder of the engine stay"
    " hot all the time. It rained in Glasgow that week. Because the cylinder stayed hot, the engine"
    " with the condenser burned a quarter of the coal. Lunch was served at noon in the hall. Mills"
    " bought the engine for the coal that the condenser saved them."
)
CHINESE = (
    "蒸汽机把煤的热能变成机械能。瓦特发明了分离式冷凝器，让蒸汽机的汽缸一直保持高温。"
    "那天格拉斯哥下着小雨。"
    "因为汽缸一直保持高温，带冷凝器的蒸汽机只烧原来四分之一的煤。中午大家在大厅里吃了午饭。"
    "工厂为了省煤买下了带冷凝器的蒸汽机。"
)


def test_sentences_in_two_scripts() -> None:
    assert len(split_sentences(ENGLISH)) in (6, 7)  # "Dr." may end one
    assert len(split_sentences(CHINESE)) == 6
    assert is_cjk(CHINESE)
    assert not is_cjk(ENGLISH)
    assert stem_words("Message Queues, C++ & 蒸汽机") == ["message", "queue", "c++", "蒸汽", "汽机"]


@pytest.mark.parametrize(
    ("text", "about", "aside"), [(ENGLISH, "condenser", "Lunch"), (CHINESE, "冷凝器", "午饭")]
)
def test_a_summary_has_the_sentences_that_matter(text: str, about: str, aside: str) -> None:
    summary = summarize_text(text, "Condenser engine 冷凝器 蒸汽机")

    assert summary is not None
    assert about in summary
    assert aside not in summary
    assert len(summary) <= 500
    found = split_sentences(text)
    at = [found.index(one) for one in split_sentences(summary)]
    assert at == sorted(at), "in the order of the text"


def test_a_page_may_have_said_it_best_itself() -> None:
    good = (
        "How James Watt's separate condenser turned a curiosity into the machine that drove a"
        " hundred years of industry."
    )
    assert summarize_text(ENGLISH, "", good) == good
    assert (
        summarize_text(
            ENGLISH,
            "",
            "Please enable JavaScript and accept our cookie policy to go on reading this very good"
            " page of ours.",
        )
        != good
    )
    assert summarize_text("Too short.", "Too short") is None
    assert len(truncate_at_word("word " * 300)) <= 500


def test_key_phrases_are_few_and_telling() -> None:
    text = (
        "We moved to Kubernetes because of the job queue. The job queue of Kubernetes was slow. A"
        " job queue needs Redis. " * 2
    )
    phrases = [
        phrase.casefold() for phrase in extract_key_phrases("A job queue in Kubernetes", text)
    ]
    assert phrases[:2] == ["job queue", "kubernetes"] or phrases[:2] == ["kubernetes", "job queue"]
    assert extract_key_phrases("今天", "今天天气很好。") == []
    assert "蒸汽机" in extract_key_phrases("瓦特与蒸汽机", CHINESE)


@pytest.mark.parametrize(
    ("pattern", "url", "yes"),
    [
        ("github.com", "https://github.com/a/b", True),
        ("github.com", "https://gist.github.com/a", True),
        ("github.com", "https://notgithub.com/a", False),
        ("example.com/blog", "https://www.example.com/blog/2024", True),
        ("example.com/blog", "https://example.com/blogging", False),
        ("https://www.Example.com/", "http://example.com", True),
        ("wiki/", "http://wiki/start", True),
        ("http://wiki", "http://wiki:8080/start", True),
        ("wiki/", "http://wiki.example.com/", False),
        ("wiki.corp:8080/x", "http://wiki.corp:8080/x/y", True),
        ("wiki.corp:8080/x", "http://wiki.corp/x/y", False),
        ("localhost:3000", "http://localhost:3000/a", True),
        ("localhost", "http://localhost:3000/a", True),
        ("[::1]:80", "http://[::1]:80/", True),
        ('"steam engine"', None, True),
        ('"steam boat"', None, False),
    ],
)
def test_rules(pattern: str, url: str | None, yes: bool) -> None:
    assert is_match(normalize_pattern(pattern), url, "All about Steam Engines") is yes


@pytest.mark.parametrize("pattern", ["wiki/", "wiki:80/x", "github.com", '"espresso"'])
def test_a_stored_rule_can_be_saved_again(pattern: str) -> None:
    assert normalize_pattern(normalize_pattern(pattern)) == pattern


@pytest.mark.parametrize(
    "bad", ["", "github", "not a host", '""', "a b.com", "javascript:alert(1)", "wiki:x"]
)
def test_bad_rules_are_refused(bad: str) -> None:
    with pytest.raises(InvalidRule):
        normalize_pattern(bad)


def test_each_suggestion_says_why() -> None:
    steam = ExtractedPage(
        "https://github.com/x",
        title="Steam engines",
        text=ENGLISH,
        keywords=("Industry", "Brand new"),
    )
    mine = UserBackground(
        vocabulary={
            "engines": "Engines",
            "condenser": "Condenser",
            "industry": "Industry",
            "glasgow": "Glasgow",
        },
        aliases={"coal": "Fuel"},
        rules=[TaggingRule("github.com", ("code",))],
    )

    found = {
        one.name: (one.confidence, one.reason)
        for one in suggest_tags(EnrichmentInput("x", "https://github.com/x", steam), mine)
    }

    assert found["code"] == (0.95, "Your rule for github.com")
    assert found["Industry"] == (0.85, "Keyword of the page")
    assert found["Engines"] == (0.8, "In the title")
    assert found["Condenser"][1] == "Mentioned 4 times in the text"
    assert found["Fuel"][1] == "Mentioned 2 times in the text", (
        "a merged name means what it was merged into"
    )
    assert "Glasgow" not in found, "once is no subject"


def test_similar_items_vote_and_refused_names_stay_away() -> None:
    past = [
        NeighbourItem(
            build_word_profile("Condensers for engines", "", "coal and cylinders"), ("Machines",)
        )
        for _ in range(3)
    ]
    past += [
        NeighbourItem(build_word_profile("Bread and butter", "", "flour and an oven"), ("Cooking",))
    ]
    note = EnrichmentInput("A better condenser for the engine saves coal")

    (vote,) = [
        one
        for one in suggest_tags(note, UserBackground(neighbours=past))
        if "similar" in one.reason
    ]

    assert (vote.name, vote.reason) == ("Machines", "On 3 similar items")
    assert vote.confidence >= 0.6
    assert not [
        one
        for one in suggest_tags(
            note, UserBackground(neighbours=past, unwanted=frozenset({"machines"}))
        )
        if one.name == "Machines"
    ]


def test_a_short_note_is_its_own_summary() -> None:
    proposal = describe_offline(EnrichmentInput("Buy coal\nand oil"), UserBackground())
    assert (proposal.title, proposal.summary) == ("Buy coal", None)
    assert describe_offline(EnrichmentInput(ENGLISH), UserBackground()).summary


def test_an_answer_in_a_fence_is_an_answer() -> None:
    said = (
        'Sure:\n```json\n{"title": "A", "summary": "B.", "tags": ["c++", "机器学习"], "more":'
        " 1}\n```"
    )
    assert parse_response(said).tags == ["c++", "机器学习"]


def test_a_model_needs_a_name(tmp_path: object) -> None:
    with pytest.raises(ValueError, match="REFRACT_MODEL_NAME"):
        Settings(model_url="http://127.0.0.1:11434/v1")
    assert (
        Settings(model_url="http://127.0.0.1:11434/v1/", model_name="x").model_url
        == "http://127.0.0.1:11434/v1"
    )
