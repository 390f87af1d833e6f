"""Extractive summaries.

They consist of the sentences that share most with the rest and with the title, and least with each
other.
"""

import re
from collections import Counter

from refract.library.enrichment.language import drop_stop_words, is_cjk, split_sentences, stem_words

MAX_SUMMARY_LENGTH = 500
_MAX_SENTENCES = 3
_MAX_SENTENCES_READ = 120
_BOILERPLATE = re.compile(
    r"cookie|subscribe|sign up|newsletter|all rights reserved|privacy policy|enable javascript|log"
    r" ?in|click here|©|订阅|登录|版权所有",
    re.IGNORECASE,
)


def summarize_text(text: str, title: str = "", description: str | None = None) -> str | None:
    """Return at most 500 characters, or None if the text says no more than its title."""
    if description and len(description) >= 80 and not _BOILERPLATE.search(description):
        return truncate_at_word(description)
    found = _list_usable_sentences(text, title)
    if not found:
        return (
            truncate_at_word(description)
            if description and not _BOILERPLATE.search(description)
            else None
        )
    chosen = _choose_sentences(found, set(drop_stop_words(stem_words(title))))
    return truncate_at_word(
        ("" if is_cjk(text) else " ").join(sentence for _, sentence in sorted(chosen))
    )


def truncate_at_word(text: str, max_length: int = MAX_SUMMARY_LENGTH) -> str:
    """Return a text shortened to fit, at the end of a word if there is one."""
    text = " ".join(text.split())
    if len(text) <= max_length:
        return text
    head = text[: max_length - 1]
    space = head.rfind(" ")
    return f"{(head[:space] if space > max_length * 0.6 else head).rstrip(' ,;:')}…"


def _list_usable_sentences(text: str, title: str) -> list[tuple[int, str, list[str]]]:
    cjk = is_cjk(text)
    seen: set[str] = set()
    found = []
    for at, sentence in enumerate(split_sentences(text)[:_MAX_SENTENCES_READ]):
        words = drop_stop_words(stem_words(sentence))
        short = len(sentence) < (10 if cjk else 40)
        if (
            short
            or len(words) < 4
            or sentence in seen
            or _BOILERPLATE.search(sentence)
            or sentence.strip(" .") == title.strip(" .")
        ):
            continue
        seen.add(sentence)
        found.append((at, sentence, words))
    return found


def _choose_sentences(
    found: list[tuple[int, str, list[str]]], title: set[str]
) -> list[tuple[int, str]]:
    frequency = Counter(word for _, _, words in found for word in set(words))
    score = {
        at: _score_sentence(place, words, frequency, title)
        for place, (at, _, words) in enumerate(found)
    }
    chosen: list[tuple[int, str, set[str]]] = []
    left = {at: (sentence, set(words)) for at, sentence, words in found}
    room = MAX_SUMMARY_LENGTH
    while left and len(chosen) < _MAX_SENTENCES:
        best = max(
            left,
            key=lambda at: (
                score[at]
                * (
                    1
                    - max((_compute_overlap(left[at][1], words) for *_, words in chosen), default=0)
                )
            ),
        )
        sentence, words = left.pop(best)
        if len(sentence) <= room or not chosen:
            chosen.append((best, sentence, words))
            room -= len(sentence) + 1
        if room < 60:
            break
    return [(at, sentence) for at, sentence, _ in chosen]


def _score_sentence(
    place: int, words: list[str], frequency: Counter[str], title: set[str]
) -> float:
    """Score the words that a sentence shares with others.

    The score is per word, so that length does not win; words of the title and an early place count
    more.
    """
    shared = sum(frequency[word] - 1 + (2 if word in title else 0) for word in set(words))
    return (shared + 0.5) / (len(words) + 4) * (1.5 if place == 0 else 1.2 if place < 3 else 1.0)


def _compute_overlap(first: set[str], second: set[str]) -> float:
    return len(first & second) / max(1, min(len(first), len(second)))
