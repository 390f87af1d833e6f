"""Words of a text, and the tokens under which an index stores them.

A token is plain ASCII behind a mark of two characters. No database's own rules (stop words,
shortest words, collations, separators) apply to it any more, and a prefix of a word is a prefix of
its token: three databases find the same. Pure.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from refract.core.text import fold_text, strip_accents

MAX_TOKEN = 80
"""MariaDB ignores tokens longer than 84; PostgreSQL would take 2,046."""

MIN_PART = 3
"""Letters that a part of a word must have to be found inside it: fewer are in too many words."""
MAX_PARTED_WORD = 40
"""Letters of a word whose parts are found."""

CJK = (
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Kana
    "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Chinese, Japanese and Korean, as ranges of a regular expression."""
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    f"{CJK}"
)
"""Scripts that put no space between words: every pair of neighbours is a word."""
_MARKS = "".join(
    chr(code) for code in range(0x300, 0x1E00) if unicodedata.category(chr(code))[0] == "M"
)
"""Combining marks: many scripts write vowels as marks, which are not letters."""
_WORD = rf"[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*"
_RUNS = re.compile(rf"[{_UNSPACED}]+|{_WORD}")
_COMPOUND_RUNS = re.compile(rf"[{_UNSPACED}]+|{_WORD}(?:['’.+#-]+{_WORD})*[+#]*")
_PAIRED = re.compile(rf"[{_UNSPACED}]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def split_words(text: str, *, compounds: bool = False, tails: bool = False) -> Iterator[str]:
    """Yield the words of a text in order.

    They are folded runs of letters and digits, and pairs of neighbours where a script has no
    spaces. With `compounds`, `c++`, `node.js` and `it's` are one word each. With `tails`, the last
    character of a run without spaces is a word too, though it begins no pair: an index finds any
    character by the beginning of a word.
    """
    for run in (_COMPOUND_RUNS if compounds else _RUNS).findall(fold_text(text)):
        if len(run) > 1 and _PAIRED.match(run):
            yield from (run[start : start + 2] for start in range(len(run) - (not tails)))
        else:
            yield run


def query_terms(text: str) -> list[str]:
    """Return the words to look for, each once.

    Of a run without spaces, the pairs that every match must contain.
    """
    return list(dict.fromkeys(split_words(text)))


def find_spans(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Return where words of a search occur in a text, as positions that don't overlap.

    `words` are folded, as `query_terms` returns them. A word whose folded form has another length
    is found as a whole.
    """
    sought = [word for word in words if word]
    spans: list[tuple[int, int]] = []
    for run in _RUNS.finditer(text) if sought else ():
        for spelling in spell_word(fold_text(run[0])):
            for word in sought:
                for found in re.finditer(re.escape(word), spelling):
                    is_aligned = len(spelling) == len(run[0])
                    start, end = found.span() if is_aligned else (0, len(run[0]))
                    spans.append((run.start() + start, run.start() + end))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def make_snippet(text: str, words: Iterable[str], *, before: int = 40, length: int = 140) -> str:
    """Return the part of a text around the first of the words, or an empty text."""
    spans = find_spans(text, words)
    if not spans:
        return ""
    start = max(0, spans[0][0] - before)
    if start and (space := text.find(" ", start, spans[0][0])) >= 0:
        start = space + 1
    end = text.rfind(" ", start, start + length) if len(text) > start + length else len(text)
    end = end if end > spans[0][0] else start + length
    part = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{part}{'…' if end < len(text) else ''}"


def spell_word(word: str) -> tuple[str, ...]:
    """Return a word, and the same without accents and typographic forms, if it has any.

    So `cafe` finds `café`, and `café` finds itself alone.
    """
    if word.isascii():
        return (word,)
    plain = strip_accents(word)
    return (word,) if plain == word or not plain else (word, plain)


def encode_word(mark: str, word: str) -> str:
    """Return the token of a word.

    Characters beyond a–y and 0–9 become a `z` with four digits to the base 36, `z` itself `zz`.
    """
    plain = word.isascii() and word.isalnum() and word.islower()
    encoded = word.replace("z", "zz") if plain else "".join(map(_encode_character, word))
    return f"{mark}{encoded}"[:MAX_TOKEN]


def encode_texts(mark: str, texts: Iterable[str | None], limit: int) -> dict[str, None]:
    """Return the distinct tokens of some texts in order of appearance, up to about `limit`."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    for text in texts:
        for word in split_words(text or "", tails=True):
            if word in seen:
                continue
            seen.add(word)
            found.update(
                dict.fromkeys(encode_word(mark, spelling) for spelling in spell_word(word))
            )
            if len(found) >= limit:
                return found
    return found


def encode_parts(mark: str, texts: Iterable[str | None], limit: int) -> dict[str, None]:
    """Return tokens of the ends of words, up to about `limit`.

    What is inside a word is the beginning of one of its ends, so it is found by the same kind of
    query as the beginning of a word.
    """
    found: dict[str, None] = {}
    for text in texts:
        for word in split_words(text or ""):
            for spelling in spell_word(word[:MAX_PARTED_WORD]):
                ends = range(1, len(spelling) - MIN_PART + 1)
                found |= dict.fromkeys(encode_word(mark, spelling[start:]) for start in ends)
            if len(found) >= limit:
                return found
    return found


def encode_number(mark: str, number: int) -> str:
    """Return a number as a token that is never the beginning of another: its end is not a digit."""
    digits = ""
    while number:
        number, digit = divmod(number, 35)
        digits = _DIGITS[digit] + digits
    return f"{mark}{digits}z"


def _encode_character(character: str) -> str:
    if "a" <= character <= "y" or "0" <= character <= "9":
        return character
    if character == "z":
        return "zz"
    code, digits = ord(character), ""
    for _ in range(4):
        code, digit = divmod(code, 36)
        digits = _DIGITS[digit] + digits
    return f"z{digits}"
