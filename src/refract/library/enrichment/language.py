"""Stems, stop words, sentences, weighted words and key phrases of a text. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log
from pathlib import Path

from refract.core.text import fold_text
from refract.core.words import CJK, split_words

_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W\d_a-zß-ÿ])|(?<=[。！？；])[”’」』）]*|\n+"
)
_CJK_RUN = re.compile(rf"[{CJK}]")

# The most frequent words without meaning of their own, by language. Short lists are enough: the
# frequency of words does the rest.
STOP = frozenset((Path(__file__).parent / "stop_words.txt").read_text(encoding="utf-8").split())
_CJK_STOP = frozenset(
    "的了和是在我有他这中大来上个们到说地为子时道要就出会可也你对生能而得着下自之年过后作里用成所然家种多经去学如都同现当没起还发好看进两些其理本天因想样只方已无开手"
)


def is_cjk(text: str) -> bool:
    """Return whether most letters are Chinese, Japanese or Korean."""
    letters = [character for character in text[:2000] if character.isalpha()]
    return bool(letters) and len(_CJK_RUN.findall("".join(letters))) * 2 > len(letters)


def stem_words(text: str) -> list[str]:
    """Return the words of a text in order, each as its stem."""
    return [stem_word(word.replace("’", "'")) for word in split_words(text, compounds=True)]


def stem_word(word: str) -> str:
    """Return one form for singular and plural, roughly: enough to find `queues` by `queue`."""
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def drop_stop_words(words: Iterable[str]) -> list[str]:
    """Return the words that carry a subject."""
    return [word for word in words if _has_subject(word)]


def _has_subject(word: str) -> bool:
    if _CJK_RUN.match(word):
        return not all(character in _CJK_STOP for character in word) and word[0] not in "的了和是在"
    return len(word) > 1 and word not in STOP and not word.replace(".", "").isdigit()


def split_sentences(text: str) -> list[str]:
    """Return the sentences in order, without blanks; a line's end ends a sentence too."""
    return [sentence.strip() for sentence in _SENTENCE.split(text) if sentence and sentence.strip()]


def count_run(needle: Sequence[str], hay: Sequence[str]) -> int:
    """Return how often a run of words occurs in another."""
    length = len(needle)
    first = needle[0] if needle else ""
    return (
        sum(hay[at : at + length] == list(needle) for at, word in enumerate(hay) if word == first)
        if length
        else 0
    )


def reduce_to_root(word: str) -> str:
    """Return a coarser form than `stem_word`: `grinder` and `grinding` are the same."""
    for ending in ("ings", "ing", "ers", "er", "ed", "es", "en", "em", "e", "n"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def weigh_words(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the words of weighted texts; the weight grows with the logarithm of the count."""
    counted: Counter[str] = Counter()
    weight: dict[str, float] = {}
    for text, factor in parts:
        for word in map(reduce_to_root, drop_stop_words(stem_words(text))):
            counted[word] += 1
            weight[word] = max(weight.get(word, 0), factor)
    return {word: weight[word] * (1 + log(times)) for word, times in counted.items()}


# Key phrases of a text: names, and pairs of words that recur.

_MAX_TEXT_LENGTH = 20_000
_PROPER_NAME = re.compile(r"(?<=[a-z,;:0-9)] )((?:[A-Z][\w+#.]*|[A-Z]{2,})(?: [A-Z][\w+#]*){0,2})")
_LATIN = re.compile(r"[a-zA-Z][a-zA-Z+#-]+")


def extract_key_phrases(title: str, text: str, limit: int = 3) -> list[str]:
    """Return the best phrases. Few, and rather none than a poor one: each would be a new tag."""
    text = text[:_MAX_TEXT_LENGTH]
    found = _score_chinese(title, text) if is_cjk(f"{title} {text}") else _score_latin(title, text)
    phrases: list[str] = []
    for phrase, _ in found.most_common(limit * 4):
        if not any(
            fold_text(phrase) in fold_text(chosen) or fold_text(chosen) in fold_text(phrase)
            for chosen in phrases
        ):
            phrases.append(phrase)
        if len(phrases) == limit:
            break
    return phrases


def _score_latin(title: str, text: str) -> Counter[str]:
    scores: Counter[str] = Counter()
    in_title = {stem_word(fold_text(word)) for word in _LATIN.findall(title)} - STOP
    spellings: dict[str, str] = {}
    for name in _PROPER_NAME.findall(text):
        clean = name.strip(" .")
        if fold_text(clean) not in STOP and 2 < len(clean) <= 30:
            spellings.setdefault(fold_text(clean), clean)
            scores[spellings[fold_text(clean)]] += 1
    words = [fold_text(word) for word in _LATIN.findall(text)]
    pairs = Counter(pairwise(words))
    for (first, second), times in pairs.items():
        if (
            times >= 3
            and first not in STOP
            and second not in STOP
            and len(first) > 2
            and len(second) > 2
        ):
            scores[f"{first} {second}"] += times
    single = Counter(word for word in words if len(word) > 3 and word not in STOP)
    for word, times in single.items():
        if times >= 3 and stem_word(word) in in_title:
            scores[spellings.get(word, word)] += times
    for phrase in list(scores):
        touched = any(stem_word(fold_text(word)) in in_title for word in phrase.split())
        scores[phrase] *= 3 if touched else 1
        if scores[phrase] < 4:
            del scores[phrase]
    return scores


def _score_chinese(title: str, text: str) -> Counter[str]:
    """Score runs of two to four characters that title and text share.

    Of two with the same count, the longer one wins.
    """
    scores: Counter[str] = Counter()
    for run in re.findall(rf"[{CJK}]{{2,}}", title):
        for length in (4, 3, 2):
            for at in range(len(run) - length + 1):
                piece = run[at : at + length]
                times = text.count(piece)
                if times >= 2 and not set(piece) & set(
                    "的了是在和与或这那我你他们有个不就也都很把被让从对为以及其一"
                ):
                    scores[piece] = max(scores[piece], times * length)
    return scores
