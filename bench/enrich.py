"""How good the offline tier's tags are, on a labelled set of our own, and what a description costs.

`bench/labelled/enrich.jsonl` holds 48 short texts on eight subjects in three languages, written for
this purpose. Each is described as if the other 47 were the person's library (leave one out): is the
surest tag the right one, and is it right when the assistant is sure (0.6 or more)? The second line
is a person's first day: their eight tags exist, nothing bears one, and most do not stand in the
text.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common import table
from refract.library.enrichment.offline import build_word_profile, describe_offline
from refract.library.enrichment.types import (
    EnrichmentInput,
    ExtractedPage,
    NeighbourItem,
    UserBackground,
)
from refract.tags.grammar import personal_key

LABELLED = Path(__file__).parent / "labelled/enrich.jsonl"
SURE = 0.6
BAR_FIRST, BAR_SURE = 0.6, 0.8


@dataclass
class Figures:
    asked: int = 0
    first: int = 0
    none: int = 0
    sure: int = 0
    sure_right: int = 0

    def add(self, right: str, found: Sequence[tuple[str, float]]) -> None:
        self.asked += 1
        self.none += not found
        if found:
            self.first += found[0][0] == right
            if found[0][1] >= SURE:
                self.sure += 1
                self.sure_right += found[0][0] == right

    def row(self, name: str) -> list[str]:
        share = f"{self.sure_right} of {self.sure}" if self.sure else "–"
        return [name, f"{self.first} of {self.asked}", share, str(self.none)]


def measure(examples: list[dict[str, str]]) -> tuple[Figures, Figures, float]:
    tags = {example["tag"] for example in examples}
    vocabulary = {personal_key(tag): tag for tag in tags}
    known = [
        NeighbourItem(build_word_profile(one["title"], "", one["text"]), (one["tag"],))
        for one in examples
    ]
    library, first_day = Figures(), Figures()
    began = time.process_time()
    for at, one in enumerate(examples):
        material = EnrichmentInput(
            "x", None, ExtractedPage("https://example.com/", title=one["title"], text=one["text"])
        )
        for figures, neighbours in ((library, [*known[:at], *known[at + 1 :]]), (first_day, [])):
            proposal = describe_offline(
                material, UserBackground(vocabulary=vocabulary, neighbours=neighbours)
            )
            figures.add(
                one["tag"],
                [(tag.name, tag.confidence) for tag in proposal.tags if tag.name in tags],
            )
    return library, first_day, (time.process_time() - began) / (2 * len(examples))


def main(arguments: list[str]) -> int:
    argparse.ArgumentParser(
        prog="make bench enrich", description=__doc__.splitlines()[0]
    ).parse_args(arguments)
    examples = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    library, first_day, seconds = measure(examples)
    table(
        ["", "surest tag right", f"right when ≥ {SURE}", "no tag"],
        [library.row("a library of 47"), first_day.row("the first day")],
    )
    print(f"{seconds * 1000:.1f} ms of CPU for a description (title, summary, tags)")
    held = (
        library.first >= BAR_FIRST * library.asked and library.sure_right >= BAR_SURE * library.sure
    )
    print(f"bar: {BAR_FIRST:.0%} right, {BAR_SURE:.0%} when sure: {'held' if held else 'NOT held'}")
    return 0 if held else 1
