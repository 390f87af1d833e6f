"""Background jobs after the deletion of an account."""

from refract.admin.personal_data import PERSONAL_DATA_HOOKS
from refract.core.runtime import Runtime
from refract.identity.account_deletion import repeat_erasure
from refract.identity.payloads import FinishAccountDeletion
from refract.jobs.handlers import handles
from refract.jobs.schedule import PeriodicJob


@handles(FinishAccountDeletion)
async def finish_account_deletion(rt: Runtime, job: FinishAccountDeletion) -> None:
    async with rt.db.write() as session:
        await repeat_erasure(session, rt, job.user_id, PERSONAL_DATA_HOOKS)
    await rt.db.checkpoint()


HANDLERS = (finish_account_deletion,)
PERIODIC: tuple[PeriodicJob, ...] = ()
