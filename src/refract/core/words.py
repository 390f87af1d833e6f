"""Words as they are searched for: one tokeniser and one spelling of tokens, so that three databases find the same.

A token is plain ASCII behind a mark of two characters. No database's own rules (stop words, shortest words, collations, separators) apply
to it any more, and a prefix of a word is a prefix of its token.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from refract.core.text import fold

WORD = "w0"
"""Marks a word of any field."""
TITLE = "t0"
"""Marks a word of the title."""
LONGEST_TOKEN = 80
"""MariaDB leaves out what is longer than 84; PostgreSQL would take 2,046."""

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese syllables
    "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Scripts that put no space between words: every pair of neighbours is a token."""
_MARKS = "".join(chr(code) for code in range(0x300, 0x1E00) if unicodedata.category(chr(code))[0] == "M")
"""Many scripts write vowels as marks, which are no letters by themselves."""
_RUNS = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*")
_PAIRED = re.compile(rf"[{_UNSPACED}]")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def words(text: str) -> Iterator[str]:
    """The words of a text in their order: folded runs of letters and digits, pairs of neighbours where a script has no spaces.

    The last character of such a run stands alone too: the others begin a pair.
    """
    for run in _RUNS.findall(fold(text)):
        if _PAIRED.match(run):
            yield from (run[start : start + 2] for start in range(len(run)))
        else:
            yield run


def spellings(word: str) -> tuple[str, ...]:
    """A word, and the same without accents and typographic forms: who types `cafe` finds `café`, who types the accent means it."""
    if word.isascii():
        return (word,)
    plain = fold(unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", word))))
    return (word,) if plain == word or not plain else (word, plain)


def sought(text: str) -> list[str]:
    """The words somebody looks for, each once. Of a run without spaces, the pairs that every match must contain."""
    found: dict[str, None] = {}
    for run in _RUNS.findall(fold(text)):
        if _PAIRED.match(run) and len(run) > 1:
            found.update(dict.fromkeys(run[start : start + 2] for start in range(len(run) - 1)))
        else:
            found[run] = None
    return list(found)


def token(mark: str, word: str) -> str:
    """A word as every database keeps it. Characters beyond a–y and 0–9 become a `z` with four digits to the base 36, `z` itself `zz`."""
    plain = word.isascii() and word.isalnum() and word.islower()
    spelled = word.replace("z", "zz") if plain else "".join(map(_spelled, word))
    return f"{mark}{spelled}"[:LONGEST_TOKEN]


def tokens(mark: str, texts: Iterable[str | None], most: int) -> dict[str, None]:
    """The distinct tokens of some texts in order of appearance; what goes beyond `most` is left out."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    for text in texts:
        for word in words(text or ""):
            if word in seen:
                continue
            seen.add(word)
            found.update(dict.fromkeys(token(mark, spelling) for spelling in spellings(word)))
            if len(found) >= most:
                return found
    return found


def number_token(mark: str, number: int) -> str:
    """A number as a token of its own, never the beginning of another: ends in a sign that no digit is."""
    digits = ""
    while number:
        number, digit = divmod(number, 35)
        digits = _DIGITS[digit] + digits
    return f"{mark}{digits}z"


def _spelled(character: str) -> str:
    if "a" <= character <= "y" or "0" <= character <= "9":
        return character
    if character == "z":
        return "zz"
    code, digits = ord(character), ""
    for _ in range(4):
        code, digit = divmod(code, 36)
        digits = _DIGITS[digit] + digits
    return f"z{digits}"
