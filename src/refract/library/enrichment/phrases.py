"""Key phrases of a text: names, and pairs of words that recur."""

import re
from collections import Counter
from itertools import pairwise

from refract.core.text import fold_text
from refract.core.words import CJK
from refract.library.enrichment.language import STOP, is_cjk, stem_word

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
