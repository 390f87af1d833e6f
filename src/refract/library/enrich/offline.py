"""The tier that is always there: no network, no model, a few milliseconds."""

from collections.abc import Iterator

from refract.core.text import fold
from refract.library.capturing import first_line
from refract.library.enrich.language import count_run, is_cjk, stem_words, weigh_words
from refract.library.enrich.material import Background, Material, Proposal, Suggested
from refract.library.enrich.neighbours import votes
from refract.library.enrich.phrases import key_phrases
from refract.library.enrich.rules import matches
from refract.library.enrich.summary import summarise
from refract.tags.errors import InvalidTag
from refract.tags.grammar import check_personal, personal_key

LONGEST_TITLE = 100
MOST_KNOWN = 5
MOST_NEW = 3
_CONSIDERED = 30_000
_SHORT_NOTE = 280


def describe(material: Material, background: Background, *, suggesting: bool = True) -> Proposal:
    """A title, a summary and tags with a reason each."""
    return Proposal(title_of(material), _summary(material), suggest(material, background) if suggesting else [])


def title_of(material: Material) -> str | None:
    if material.page is not None:
        return " ".join((material.page.title or "").split())[:255] or None
    return first_line(material.text, LONGEST_TITLE) or None


def _summary(material: Material) -> str | None:
    """A short note is its own summary."""
    if material.page is None and len(material.text) < (_SHORT_NOTE // 3 if is_cjk(material.text) else _SHORT_NOTE):
        return None
    description = material.page.description if material.page is not None else None
    return summarise(material.body[:_CONSIDERED], material.headline, description)


def words_of(title: str, summary: str, text: str) -> dict[str, float]:
    """An item's words as they are compared: the title counts most."""
    return weigh_words([(title, 3.0), (summary, 1.5), (text[:3000], 1.0)])


def suggest(material: Material, background: Background) -> list[Suggested]:
    """The surest first: tags the person has, then a few new ones. What they have refused, or the item bears already, is left out."""
    best: dict[str, Suggested] = {}
    for one in _candidates(material, background):
        try:
            name = check_personal(background.aliases.get(personal_key(one.name), one.name))
        except InvalidTag:
            continue
        key = personal_key(name)
        name = background.vocabulary.get(key, name)
        if key not in background.unwanted and (key not in best or best[key].confidence < one.confidence):
            best[key] = Suggested(name, one.confidence, one.reason[:200], one.source)
    ranked = sorted(best.items(), key=lambda pair: (-pair[1].confidence, pair[0]))
    known = [one for key, one in ranked if key in background.vocabulary or one.confidence >= 0.9]
    new = [one for key, one in ranked if not (key in background.vocabulary or one.confidence >= 0.9)]
    return [*known[:MOST_KNOWN], *new[: max(0, min(MOST_NEW, MOST_KNOWN + 1 - len(known[:MOST_KNOWN])))]]


def _candidates(material: Material, background: Background) -> Iterator[Suggested]:
    yield from _by_rules(material, background)
    yield from _by_keywords(material, background)
    yield from _by_vocabulary(material, background)
    yield from _by_neighbours(material, background)
    for phrase in key_phrases(material.headline, material.body):
        yield Suggested(phrase, 0.4, "often in the text")


def _by_rules(material: Material, background: Background) -> Iterator[Suggested]:
    text = f"{material.headline}\n{material.body[:_CONSIDERED]}"
    for rule in background.rules:
        if matches(rule.pattern, material.url, text):
            yield from (Suggested(tag, 0.95, f"your rule for {rule.pattern}") for tag in rule.tags)


def _by_keywords(material: Material, background: Background) -> Iterator[Suggested]:
    for word in material.page.keywords if material.page is not None else ():
        known = personal_key(word) in background.vocabulary or personal_key(word) in background.aliases
        if known or len(word) <= 30:
            yield Suggested(word, 0.85 if known else 0.45, "a keyword of the page")


def _by_vocabulary(material: Material, background: Background) -> Iterator[Suggested]:
    title, body = material.headline, material.body[:_CONSIDERED]
    in_title, in_body = stem_words(title), stem_words(body)
    for key, name in {**background.vocabulary, **background.aliases}.items():
        if _times(key, title, in_title):
            yield Suggested(name, 0.8, "in the title")
        elif (times := _times(key, body, in_body)) >= 2:
            yield Suggested(name, 0.6 if times < 5 else 0.65, f"{times} times in the text")


def _times(key: str, text: str, words: list[str]) -> int:
    return fold(text).count(key) if is_cjk(key) else count_run(stem_words(key), words)


def _by_neighbours(material: Material, background: Background) -> Iterator[Suggested]:
    if background.neighbours:
        mine = words_of(material.headline, (material.page.description or "") if material.page else "", material.body)
        for tag, confidence, times in votes(mine, background.neighbours):
            yield Suggested(tag, confidence, "1 similar item" if times == 1 else f"{times} similar items")
