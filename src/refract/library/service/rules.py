"""Tag rules of a user."""

from collections.abc import Sequence

from sqlalchemy import delete

from refract.core.db.bulk import get_rowcount
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.text import make_excerpt
from refract.identity.models import User
from refract.library.enrichment.rules import TOO_MANY_RULES, normalize_pattern
from refract.library.errors import InvalidRule, RuleNotFound
from refract.library.models import TagRule
from refract.library.queries.items import list_tag_rules
from refract.library.schemas import MAX_RULES, RuleIn
from refract.tags.grammar import check_personal, personal_key


async def replace_rules(
    session: WriteSession, rt: Runtime, user_id: int, rules: Sequence[RuleIn]
) -> list[TagRule]:
    """Replace all rules of a user."""
    await session.execute(delete(TagRule).where(TagRule.user_id == user_id))
    numbers = rt.ids.next_ids(len(rules))
    made = [
        TagRule(
            id=number,
            user_id=user_id,
            position=position,
            pattern=normalize_pattern(rule.pattern),
            tags=_list_distinct_tags(rule.tags),
        )
        for position, (number, rule) in enumerate(zip(numbers, rules, strict=True))
    ]
    session.add_all(made)
    await session.flush()
    return made


async def add_rule(session: WriteSession, rt: Runtime, user_id: int, rule: RuleIn) -> TagRule:
    """Add a rule at the end. If the pattern has a rule already, the tags are added to it."""
    # locked: two rules added at once would take the same position
    await session.get_one(User, user_id, with_for_update=True)
    pattern = normalize_pattern(rule.pattern)
    rules = await list_tag_rules(session, user_id)
    for known in rules:
        if known.pattern == pattern:
            known.tags = _list_distinct_tags([*known.tags, *rule.tags])
            return known
    if len(rules) >= MAX_RULES:
        raise InvalidRule(
            pattern=make_excerpt(pattern),
            why=TOO_MANY_RULES.format(limit=MAX_RULES),
        )
    position = rules[-1].position + 1 if rules else 0
    added = TagRule(
        id=rt.ids.next_id(),
        user_id=user_id,
        position=position,
        pattern=pattern,
        tags=_list_distinct_tags(rule.tags),
    )
    session.add(added)
    await session.flush()
    return added


async def delete_rule(session: WriteSession, user_id: int, rule_id: int) -> None:
    gone = await session.execute(
        delete(TagRule).where(TagRule.id == rule_id, TagRule.user_id == user_id)
    )
    if get_rowcount(gone) != 1:
        raise RuleNotFound


def _list_distinct_tags(names: Sequence[str]) -> list[str]:
    """Return each tag once, in its first spelling."""
    found: dict[str, str] = {}
    for name in map(check_personal, names):
        found.setdefault(personal_key(name), name)
    return list(found.values())
