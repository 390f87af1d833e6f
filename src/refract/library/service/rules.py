"""A person's standing orders for the assistant."""

from collections.abc import Sequence

from sqlalchemy import delete

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.library.enrich.rules import check_pattern
from refract.library.models import TagRule
from refract.library.schemas import RuleIn
from refract.tags.grammar import check_personal


async def set_rules(session: WriteSession, rt: Runtime, user_id: int, rules: Sequence[RuleIn]) -> list[TagRule]:
    """Replace all rules of a person."""
    await session.execute(delete(TagRule).where(TagRule.user_id == user_id))
    numbers = rt.ids.next_ids(len(rules))
    made = [
        TagRule(
            id=number,
            user_id=user_id,
            position=position,
            pattern=check_pattern(rule.pattern),
            tags=list(dict.fromkeys(check_personal(name) for name in rule.tags)),
        )
        for position, (number, rule) in enumerate(zip(numbers, rules, strict=True))
    ]
    session.add_all(made)
    await session.flush()
    return made
