"""What is looked after when somebody has gone."""

from refract.admin.parts import PARTS
from refract.core.runtime import Runtime
from refract.identity.leaving import erase_again
from refract.identity.payloads import FinishLeaving
from refract.jobs.registry import handles
from refract.jobs.schedule import Every


@handles(FinishLeaving)
async def finish_leaving(rt: Runtime, job: FinishLeaving) -> None:
    async with rt.db.write() as session:
        await erase_again(session, rt, job.user_id, PARTS)
    await rt.db.checkpoint()


HANDLERS = (finish_leaving,)
PERIODIC: tuple[Every, ...] = ()
