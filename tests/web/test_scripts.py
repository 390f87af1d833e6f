"""Scripts show messages only: every visible literal is an argument of `t` or `tn`."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from babel.messages.jslexer import Token, tokenize

from refract.web.i18n import LANGUAGES
from refract.web.templating import WEB_DIR
from tools import messages

SCRIPTS = sorted((WEB_DIR / "static/js").glob("*.js"))
KEYS = {"ArrowDown", "ArrowUp", "Backspace", "Enter", "Escape"}
"""Names of keys, which events carry in English."""
_INTERPOLATION = re.compile(r"\$\{[^}]*\}")
_SEVERAL_WORDS = re.compile(r"\b[^\W\d_]{2,}[,.:;]? \w|\d [^\W\d_]{2,}\b")
_CAPITALIZED = re.compile(r"[A-Z][a-z]+[.…!?]?")
_SELECTOR = re.compile(r"[\[\]#=>()*]|^[a-z]+(, [a-z]+)+$")


def is_prose(literal: str) -> bool:
    """Tell whether a literal looks like words for people, not like a selector, a class or a key."""
    text = _INTERPOLATION.sub("0", literal[1:-1]).strip()
    if text in KEYS or _SELECTOR.search(text):
        return False
    return bool(_SEVERAL_WORDS.search(text) or _CAPITALIZED.fullmatch(text))


def list_untranslated(source: str) -> Iterator[str]:
    """Yield the literals of a script that people would see in English."""
    tokens = [
        token
        for token in tokenize(source, jsx=False)
        if token.type not in ("linecomment", "multilinecomment")
    ]
    for place, token in enumerate(tokens):
        before = [token.value for token in tokens[max(0, place - 4) : place]]
        if (
            token.type in ("string", "template_string")
            and is_prose(token.value)
            and not _is_message(before, token)
            and before[-2:] != ["Error", "("]  # for the console
            and before[-1:] not in (["==="], ["!=="], ["case"])  # compared, not shown
        ):
            yield token.value


def _is_message(before: list[str], token: Token) -> bool:
    """Tell whether a literal is the message of `t`, or one of the two forms of `tn`."""
    return token.type == "string" and (
        before[-2:] in (["t", "("], ["tn", "("])
        or (before[-4:-2] == ["tn", "("] and before[-1:] == [","])
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_show_only_words_of_the_catalogue(script: Path) -> None:
    assert list(list_untranslated(script.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        'label.textContent = "Copied";',
        'showToast({ message: "The order was saved.", kind: "note" });',
        "line.textContent = `Moved to ${place} of ${total}.`;",
        'input.setCustomValidity(big ? "Too large" : "");',
        'button.title = t("Theme: {theme}", { theme: "Dark" });',
        "confirm(`Open ${count} tabs?`);",
    ],
)
def test_a_visible_literal_is_found(line: str) -> None:
    assert list(list_untranslated(line))


@pytest.mark.parametrize(
    "line",
    [
        'label.textContent = t("Copied");',
        'confirm(tn("Open {n} tab?", "Open {n} tabs?", count));',
        'if (event.key === "Enter" && target.closest("a, button, summary")) return;',
        'const rows = $$("[data-row] input:not([type=checkbox])");',
        'throw new Error("copy refused");',
        'element.classList.add("toast-wrong");',
    ],
)
def test_what_nobody_reads_is_left_alone(line: str) -> None:
    assert list(list_untranslated(line)) == []


def test_every_message_of_a_script_is_extracted_and_delivered() -> None:
    called = {
        literal
        for script in SCRIPTS
        for literal in _list_messages(script.read_text(encoding="utf-8"))
    }
    extracted = {
        message.id if isinstance(message.id, str) else message.id[0]
        for message in messages.extract_messages()
        if message.id and any(path.endswith(".js") for path, _ in message.locations)
    }

    assert called == extracted
    for tag in ("de", "zh-Hans"):
        assert LANGUAGES[tag].javascript["messages"].keys() == called
    assert LANGUAGES["en"].javascript == {}


def _list_messages(source: str) -> Iterator[str]:
    """Yield the first argument of every call of `t` and `tn`."""
    tokens = list(tokenize(source, jsx=False))
    for (name, bracket), literal in zip(pairwise(tokens), tokens[2:], strict=False):
        if name.value in ("t", "tn") and bracket.value == "(" and literal.type == "string":
            yield literal.value[1:-1]
