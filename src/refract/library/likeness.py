"""Similarity of texts: the cosine of their words, weighted by rarity (TF-IDF). Pure."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log, sqrt

_MIN_RARITY = 0.1
"""The weight of a word that every text has: texts that share nothing else are slightly similar."""


@dataclass(frozen=True, slots=True)
class WordVector:
    """A text as weighted words, and the length of that vector."""

    weights: Mapping[str, float]
    length: float

    def compute_cosine(self, other: "WordVector") -> float:
        """Return the similarity of two texts, between 0 and 1."""
        few, many = sorted((self.weights, other.weights), key=len)
        shared = sum(weight * many[word] for word, weight in few.items() if word in many)
        return shared / (self.length * other.length) if shared else 0.0


class WordSpace:
    """The words of a collection of texts, and how rare each is among them."""

    def __init__(self, texts: Collection[Mapping[str, float]]) -> None:
        counts = Counter(word for text in texts for word in text)
        self._rarity = {
            word: log((1 + len(texts)) / (1 + count)) + _MIN_RARITY
            for word, count in counts.items()
        }
        self._unseen = log(1 + len(texts)) + _MIN_RARITY

    def build_vector(self, words: Mapping[str, float]) -> WordVector:
        """Return a text as a vector; words that no text of the collection has are the rarest."""
        weights = {
            word: weight * self._rarity.get(word, self._unseen) for word, weight in words.items()
        }
        return WordVector(weights, sqrt(sum(weight * weight for weight in weights.values())) or 1.0)
