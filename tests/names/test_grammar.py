"""The grammar of names, without a database."""

import sys
import urllib.parse
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.ids import MAX_ID, decode_base62, encode_base62
from refract.core.text import fold_text
from refract.names.enums import NameTarget
from refract.names.errors import InvalidSlug, SlugReserved
from refract.names.grammar import (
    KEPT_WORDS,
    RESERVED_KEYS,
    ROUTE_WORDS,
    SIGN_IN_WORDS,
    find_spellings,
    is_reserved,
    is_sensitive_name,
    name_key,
    validate_name,
)

SPECIFIED_WORDS = (
    "admin", "api", "app", "auth", "dashboard", "docs", "help", "health", "login", "logout",
    "register", "signup", "settings", "status", "support", "www", "web", "assets", "static", "mcp",
    "metrics", "links", "u", "favicon.ico", "robots.txt", "sitemap.xml", "opensearch.xml",
    "manifest.webmanifest", ".well-known", "ready", "rest",
)  # fmt: skip
"""Words that the specification reserves, whether a route uses them or not."""


@pytest.mark.parametrize("same", ["road-map", "Road_Map", "ROAD-MAP", "rOAD_mAP"])
def test_names_are_compared_without_case_and_with_underscore_as_hyphen(same: str) -> None:
    assert name_key(same) == "road-map"


@pytest.mark.parametrize(
    "name", ["a", "7", "a" * 50, "A-b_C", "x-", "9_9", "u-foo", "api2", "not-admin"]
)
def test_seed_003_link_names_have_1_to_50_letters_digits_hyphens_and_underscores(name: str) -> None:
    assert validate_name(name, NameTarget.LINK) == name_key(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it's empty"),
        ("a" * 51, "it has more than 50 characters"),
        ("-a", "it must start with a letter or a number"),
        ("_a", "it must start with a letter or a number"),
        ("a b", "only the letters A to Z"),
        ("a.b", "only the letters A to Z"),
        ("a/b", "only the letters A to Z"),
        ("a+", "only the letters A to Z"),
        ("naïve", "only the letters A to Z"),
        ("а", "only the letters A to Z"),  # Cyrillic
        ("road\n", "only the letters A to Z"),
        ("road\x00", "only the letters A to Z"),
        ("%61bc", "only the letters A to Z"),
        ("１２", "only the letters A to Z"),  # full-width digits
        ("\u212a", "only the letters A to Z"),  # the sign for kelvin folds to k
        ("ſ", "only the letters A to Z"),  # a long s folds to s
    ],
)
def test_a_refused_link_name_says_why(name: str, why: str) -> None:
    with pytest.raises(InvalidSlug) as refused:
        validate_name(name, NameTarget.LINK)
    assert why in refused.value.message


@pytest.mark.parametrize("name", ["abc", "a" * 40, "my-list-2", "1st"])
def test_list_names_have_3_to_40_lower_case_characters(name: str) -> None:
    assert validate_name(name, NameTarget.LIST) == name


@pytest.mark.parametrize("name", ["ab", "a" * 41, "Abc", "a_b", "-abc", "a.b.c", "äbc"])
def test_a_refused_list_name_says_why(name: str) -> None:
    with pytest.raises(InvalidSlug) as refused:
        validate_name(name, NameTarget.LIST)
    assert refused.value.code == "INVALID_SLUG"


def _variants(word: str) -> set[str]:
    """Return disguises of a word.

    They differ in case, `_` for `-`, percent-encoding, full-width letters, invisible characters
    and look-alikes.
    """
    wide = "".join(
        chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character for character in word
    )
    cases = {
        word,
        word.upper(),
        word.title(),
        word.swapcase(),
        word[:1] + word[1:].upper(),
        word.replace("-", "_"),
        word.replace("_", "-"),
    }
    encoded = {
        urllib.parse.quote(word, safe=""),
        "".join(f"%{byte:02x}" for byte in word.encode()),
        word.replace("a", "%61"),
    }
    dressed = {
        f"{word}.",
        f"{word}/",
        f"{word}\u200b",
        f" {word}",
        f"{word}\n",
        f"./{word}",
        f"{word}%00",
        f"{word};x",
        f"{word}?x",
        f"{word}#",
        wide,
    }
    return (
        cases
        | encoded
        | dressed
        | {
            word.replace("a", "а"),
            word.replace("i", "ı"),
            word.replace("s", "ſ"),
            word.replace("o", "ο"),
        }
    )


@pytest.mark.parametrize("word", sorted(ROUTE_WORDS | KEPT_WORDS))
@pytest.mark.parametrize("kind", list(NameTarget))
def test_no_spelling_of_a_router_word_can_be_taken(word: str, kind: NameTarget) -> None:
    """A spelling that passes is compared as another name than the word."""
    for variant in _variants(word):
        try:
            key = validate_name(variant, kind)
        except (InvalidSlug, SlugReserved):
            continue
        assert key not in RESERVED_KEYS
        assert key != name_key(word)


@pytest.mark.parametrize(
    "word", ["Admin", "API", "app", "LINKS", "U", "Robots.TXT", "OPENSEARCH.XML"]
)
def test_seed_001_reserved_words_are_refused_in_any_case(word: str) -> None:
    with pytest.raises(SlugReserved):
        validate_name(word, NameTarget.LINK)


def test_seed_002_only_whole_words_are_reserved() -> None:
    assert validate_name("u-foo", NameTarget.LINK) == "u-foo"
    assert validate_name("apis", NameTarget.LINK) == "apis"


def test_every_word_of_the_specification_is_reserved_in_any_spelling() -> None:
    assert [
        word for word in SPECIFIED_WORDS if not (is_reserved(word) and is_reserved(word.upper()))
    ] == []
    assert not is_reserved("")
    assert ROUTE_WORDS.isdisjoint(KEPT_WORDS)


def test_folding_twice_changes_nothing_for_every_character() -> None:
    characters = (
        chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF
    )
    assert [
        character
        for character in characters
        if fold_text(fold_text(character)) != fold_text(character)
    ] == []


@given(st.text(max_size=20))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold_text(fold_text(text)) == fold_text(text)


def test_a_refused_name_is_shown_without_characters_that_upset_a_terminal() -> None:
    with pytest.raises(InvalidSlug) as refused:
        validate_name("\x1b[31m" + "x" * 100, NameTarget.LINK)
    assert "\x1b" not in refused.value.message
    assert len(refused.value.message) < 200


@given(st.integers(0, MAX_ID))
def test_every_code_is_among_the_spellings_of_its_folded_form(number: int) -> None:
    code = encode_base62(number)
    assert number in find_spellings(code.lower(), 0, MAX_ID)
    assert find_spellings(code.lower(), number, number) == [number]


@given(
    st.text(alphabet="0aAbZ1z", min_size=1, max_size=6),
    st.integers(0, 62**6),
    st.integers(0, 62**6),
)
def test_spellings_are_exactly_the_ids_whose_folded_code_is_the_key(
    text: str, low: int, high: int
) -> None:
    key = text.lower()
    expected = sorted(number for number in _all_spellings(key) if low <= number <= high)
    assert find_spellings(key, low, high) == expected


def _all_spellings(key: str) -> set[int]:
    found = {
        decode_base62("".join(letters))
        for letters in product(*((c.lower(), c.upper()) for c in key))
    }
    return {number for number in found if number is not None}


def test_there_are_at_most_2048_spellings_and_none_beyond_63_bits() -> None:
    assert len(find_spellings("abcdefghij", 0, MAX_ID)) == 1024
    assert len(find_spellings("aaaaaaaaaaa", 0, MAX_ID)) <= 2048
    assert find_spellings("zzzzzzzzzzz", 0, MAX_ID) == []
    assert find_spellings("a-b", 0, MAX_ID) == []
    assert find_spellings("a" * 12, 0, MAX_ID) == []
    assert find_spellings("0ab", 0, MAX_ID) == []


def test_seed_001_the_code_of_the_seeds_example_id_is_right() -> None:
    assert encode_base62(123456789012345678) == "97qS0b7N2m"
    assert 123456789012345678 in find_spellings("97qs0b7n2m", 0, MAX_ID)


@pytest.mark.parametrize("word", ["rest", "Rest", *SIGN_IN_WORDS, "SignIn", "Sign_In"])
def test_nobody_is_given_a_name_that_reads_like_our_own_pages(word: str) -> None:
    """Security finding 2: `signin` and `sign-in` were available to everyone."""
    with pytest.raises(SlugReserved):
        validate_name(word, NameTarget.LINK)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "signin",
            "sign-in",
            "password-reset",
            "sso",
            "account",
            "security",
            "abuse",
            "terms",
            "privacy",
            "contact",
            "about",
            "home",
        ),
        *(
            "careers",
            "it-support",
            "vpn",
            "admin-login",
            "company-login",
            "Company_Login",
            "companylogin",
            "reset-password",
            "loginpage",
        ),
    ],
)
def test_names_that_promise_a_page_of_the_operator_are_sensitive(name: str) -> None:
    """Security finding 2: anonymous lists could have all of these names, which `abuse` rejects."""
    assert is_sensitive_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "roadmap",
        "blog-index",
        "blogindex",
        "reading-list",
        "team-lunch",
        "homepage-redesign",
        "q3-plan",
    ],
)
def test_ordinary_names_are_not_sensitive(name: str) -> None:
    assert not is_sensitive_name(name)


@pytest.mark.parametrize("name", ["vpn", "careers", "password-reset"])
def test_people_with_an_account_may_use_sensitive_names(name: str) -> None:
    assert validate_name(name, NameTarget.LINK) == name
