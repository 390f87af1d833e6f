"""Background jobs after the deletion of an account."""

from collections.abc import Sequence
from typing import Any

from refract.core.runtime import Runtime
from refract.identity.account_deletion import repeat_erasure
from refract.identity.payloads import FinishAccountDeletion
from refract.identity.personal_data import PersonalDataHook
from refract.jobs.handlers import JobFunction, handles


def make_handlers(hooks: Sequence[PersonalDataHook]) -> tuple[JobFunction[Any], ...]:
    """Return the handlers of jobs that concern every feature's share in a user's data."""

    @handles(FinishAccountDeletion)
    async def finish_account_deletion(rt: Runtime, job: FinishAccountDeletion) -> None:
        async with rt.db.write() as session:
            await repeat_erasure(session, rt, job.user_id, hooks)
        await rt.db.checkpoint()

    return (finish_account_deletion,)
