"""Standing orders for the assistant: `github.com → code`."""

from refract.identity.actors import Reader, Writer
from refract.library import queries, service
from refract.library.edge import ASKING, GUARDED
from refract.library.errors import InvalidRule
from refract.library.schemas import RuleList, RuleOut, RulesPut
from refract.tags.errors import InvalidTag
from refract.web.problems import problems
from refract.web.routes import large_body
from refract.web.toolkit import Rt, api_router

router = api_router("/me/tag-rules", "me")


@router.get("", responses=GUARDED)
async def list_rules(actor: Reader, rt: Rt) -> RuleList:
    """My rules, in the order in which they are asked."""
    async with rt.db.read() as session:
        return RuleList(items=[RuleOut.model_validate(rule) for rule in await queries.rules_of(session, actor.user.id)])


@router.put("", responses=problems(*ASKING, InvalidRule, InvalidTag))
@large_body
async def replace_rules(wish: RulesPut, actor: Writer, rt: Rt) -> RuleList:
    """Replace all my rules."""
    async with rt.db.write() as session:
        rules = await service.set_rules(session, rt, actor.user.id, wish.items)
        return RuleList(items=[RuleOut.model_validate(rule) for rule in rules])
