"""Text as words and sentences, in scripts with and without spaces."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log, sqrt
from pathlib import Path

from refract.core.text import fold

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_PIECES = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+(?:['’.+#-]*[^\W_{CJK}]+)*[+#]*")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W\d_a-zß-ÿ])|(?<=[。！？；])[”’」』）]*|\n+")
_CJK_RUN = re.compile(rf"[{CJK}]")

# The most frequent words that carry no subject, language by language. Short lists do: frequency settles the rest.
STOP = frozenset((Path(__file__).parent / "stop_words.txt").read_text(encoding="utf-8").split())
_CJK_STOP = frozenset(
    "的了和是在我有他这中大来上个们到说地为子时道要就出会可也你对生能而得着下自之年过后作里用成所然家种多经去学如都同现当没起还发好看进两些其理本天因想样只方已无开手"
)


def is_cjk(text: str) -> bool:
    """Whether most letters are Chinese, Japanese or Korean."""
    letters = [character for character in text[:2000] if character.isalpha()]
    return bool(letters) and len(_CJK_RUN.findall("".join(letters))) * 2 > len(letters)


def tokens(text: str) -> list[str]:
    """Folded words in order; runs of Chinese, Japanese and Korean as overlapping pairs."""
    found: list[str] = []
    for piece in _PIECES.findall(fold(text)):
        if _CJK_RUN.match(piece):
            found += [piece[at : at + 2] for at in range(len(piece) - 1)] or [piece]
        else:
            found.append(stem(piece.replace("’", "'")))
    return found


def stem(word: str) -> str:
    """One form for singular and plural, roughly: enough to find `queues` by `queue`."""
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def meaningful(words: Iterable[str]) -> list[str]:
    """Without what every text has."""
    return [word for word in words if _carries(word)]


def _carries(word: str) -> bool:
    if _CJK_RUN.match(word):
        return not all(character in _CJK_STOP for character in word) and word[0] not in "的了和是在"
    return len(word) > 1 and word not in STOP and not word.replace(".", "").isdigit()


def sentences(text: str) -> list[str]:
    """In order, without blanks; a line's end ends a sentence too."""
    return [one.strip() for one in _SENTENCE.split(text) if one and one.strip()]


def occurrences(needle: Sequence[str], hay: Sequence[str]) -> int:
    """How often a run of words stands in another."""
    length = len(needle)
    first = needle[0] if needle else ""
    return sum(hay[at : at + length] == list(needle) for at, word in enumerate(hay) if word == first) if length else 0


def root(word: str) -> str:
    """A coarser form than `stem`, for likeness alone: `grinder` and `grinding` are about the same."""
    for ending in ("ings", "ing", "ers", "er", "ed", "es", "en", "em", "e", "n"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def profile(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The words of weighted texts, each counted less the more often it comes."""
    counted: Counter[str] = Counter()
    weight: dict[str, float] = {}
    for text, factor in parts:
        for word in map(root, meaningful(tokens(text))):
            counted[word] += 1
            weight[word] = max(weight.get(word, 0), factor)
    return {word: weight[word] * (1 + log(times)) for word, times in counted.items()}


def norm(words: dict[str, float]) -> float:
    return sqrt(sum(weight * weight for weight in words.values())) or 1.0
