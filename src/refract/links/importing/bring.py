"""Rows become links, a batch in a transaction. Bringing the same rows again changes nothing."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError

from refract.core.db import WriteSession
from refract.core.errors import RefractError, StoreBusy
from refract.core.runtime import Runtime
from refract.core.schema import field_errors
from refract.identity.models import User
from refract.links.importing.known import Surroundings, Want
from refract.links.importing.rows import Candidate, LinkRow
from refract.links.schemas import MOST_IN_BULK, LinkCreate
from refract.links.service import CreatedLink, KeptIdentity, NewLink, check_links, create_links
from refract.names.errors import SlugReserved, SlugTaken
from refract.names.grammar import name_key
from refract.names.service import Namespace
from refract.records.reader import UnreadableRow

BATCH = MOST_IN_BULK
_TRIES = 3


class OnConflict(StrEnum):
    """What to do about a name that leads somewhere else already."""

    SKIP = "skip"
    RENAME = "rename"
    FAIL = "fail"


class Outcome(StrEnum):
    CREATED = "created"
    EXISTS = "already here"
    SKIPPED = "skipped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a row."""

    row: LinkRow
    outcome: Outcome
    why: str | None = None
    names: Sequence[str] = ()
    remarks: Sequence[str] = ()


class _OnlyTrying(Exception):
    """Takes a dry run's changes back."""


class Bringing:
    """One import of one person's links. `keep_ids` lets links of ours keep their ids, and so their codes: for those who may do anything."""

    def __init__(
        self,
        rt: Runtime,
        space: Namespace,
        owner: User,
        *,
        conflict: OnConflict = OnConflict.SKIP,
        dry_run: bool = False,
        keep_ids: bool = False,
    ) -> None:
        self._rt = rt
        self._space = space
        self._owner = owner
        self._conflict = conflict
        self._dry_run = dry_run
        self._keep_ids = keep_ids
        self._tried: dict[str, str] = {}
        """In a dry run: the names that earlier batches would have, and where they would lead."""

    async def batch(self, rows: Sequence[LinkRow]) -> list[Result]:
        """Make links of up to a thousand rows; each has a result of its own. All of it is committed when this returns."""
        done: dict[int, Result] = {}
        wants = await self._looked_at(rows, done)
        for left in reversed(range(_TRIES)):
            try:
                done |= await self._in_transaction(wants)
                break
            except (StoreBusy, IntegrityError):  # somebody else is importing the same links: look again
                if not left:
                    raise
        return [done[index] for index in range(len(rows))]

    async def _looked_at(self, rows: Sequence[LinkRow], done: dict[int, Result]) -> dict[int, Want]:
        """The rows that could become links, their destinations vetted. Slow, maybe: no transaction is open here."""
        new: dict[int, tuple[Candidate, LinkCreate]] = {}
        for index, row in enumerate(rows):
            if isinstance(row, UnreadableRow):
                done[index] = Result(row, Outcome.REFUSED, row.why)
                continue
            try:
                new[index] = row, LinkCreate.model_validate(row.given)
            except ValidationError as wrong:
                done[index] = Result(row, Outcome.REFUSED, " ".join(f"{one.field}: {one.message}" for one in field_errors(wrong)))
        answers = await check_links(self._rt, [given for _, given in new.values()])
        wants: dict[int, Want] = {}
        for (index, (row, given)), answer in zip(new.items(), answers, strict=True):
            if isinstance(answer, NewLink):
                wants[index] = Want(row, answer, row.number if self._keep_ids else None, tuple(given.names), tuple(row.remarks))
            else:
                done[index] = Result(row, Outcome.REFUSED, answer.message)
        return wants

    async def _in_transaction(self, wants: Mapping[int, Want]) -> dict[int, Result]:
        results: dict[int, Result] = {}
        with contextlib.suppress(_OnlyTrying):
            async with self._rt.db.write() as session:
                results = await self._settle(session, wants)
                if self._dry_run:
                    raise _OnlyTrying
        if self._dry_run:
            made = [(index, one) for index, one in results.items() if one.outcome is Outcome.CREATED]
            self._tried |= {name_key(name): wants[index].link.href for index, one in made for name in one.names}
        return results

    async def _settle(self, session: WriteSession, wants: Mapping[int, Want]) -> dict[int, Result]:
        """Rows that wish for the same name take turns: what the first has got, the next will see."""
        around = Surroundings(session, self._space, self._owner.id, self._tried)
        results: dict[int, Result] = {}
        pending = dict(wants)
        while pending:
            around.begin_turn()
            await around.look(pending.values())
            ready: dict[int, Want] = {}
            for index, want in pending.items():
                if around.planned(want, renaming=self._conflict is OnConflict.RENAME):
                    continue
                decided = self._there_already(around, want) or await self._fitted(around, want)
                if isinstance(decided, Result):
                    results[index] = decided
                else:
                    ready[index] = decided
                    around.plan(decided)
            results |= await self._make(session, around, ready)
            pending = {index: want for index, want in pending.items() if index not in results}
        return results

    def _there_already(self, around: Surroundings, want: Want) -> Result | None:
        found = around.same(want)
        if found is None:
            return None
        if found.deleted:
            why = "It was deleted here: undo that, or release its name."
            return Result(want.row, Outcome.SKIPPED, why, want.names)
        changed = found.href != want.link.href
        return Result(want.row, Outcome.EXISTS, "It was changed here since." if changed else None, want.names)

    async def _fitted(self, around: Surroundings, want: Want) -> Want | Result:
        """The want with a code and names that can be had, or why there are none."""
        if want.number is not None and not around.id_is_free(want.number):
            want = replace(want, number=None, remarks=(*want.remarks, "its code cannot be kept: it has a new one"))
        taken = [name for name in want.names if around.is_taken(name)]
        if taken and self._conflict is OnConflict.RENAME:
            renamed = await around.renamed(want)
            if renamed is None:
                return Result(want.row, Outcome.EXISTS, None, want.names)
            want = renamed
        elif taken:
            return self._conflicting(want, SlugTaken(name=taken[0]))
        lives = not want.row.disabled and (want.link.given.expires_at is None or want.link.given.expires_at > self._space.clock.now())
        if not want.names and want.number is None and not lives:
            why = "It has no name and no code that could be kept, and it does not redirect: nobody could reach it."
            return Result(want.row, Outcome.REFUSED, why)
        return want

    def _conflicting(self, want: Want, problem: RefractError) -> Result:
        skipped = self._conflict is not OnConflict.FAIL and isinstance(problem, SlugTaken)
        return Result(want.row, Outcome.SKIPPED if skipped else Outcome.REFUSED, problem.message, want.names)

    async def _make(self, session: WriteSession, around: Surroundings, ready: Mapping[int, Want]) -> dict[int, Result]:
        made = await create_links(session, self._rt, self._owner, [self._new_link(want) for want in ready.values()], charged=False)
        results: dict[int, Result] = {}
        for (index, want), answer in zip(ready.items(), made, strict=True):
            if isinstance(answer, CreatedLink):
                outcome = Outcome.EXISTS if answer.found else Outcome.CREATED
                results[index] = Result(want.row, outcome, None, answer.card.names, want.remarks)
            elif not (
                self._conflict is OnConflict.RENAME
                and isinstance(answer, SlugTaken | SlugReserved)
                and around.give_up(str(answer.facts["name"]))
            ):
                results[index] = self._conflicting(want, answer)
        return results

    def _new_link(self, want: Want) -> NewLink:
        """Return the link to create. One that has neither a name nor a code of its own is known again by where it leads."""
        alone = not want.names and want.number is None
        given = want.link.given.model_copy(update={"names": list(want.names), "find_if_exists": alone})
        return replace(want.link, given=given, kept=KeptIdentity(want.number, want.row.disabled, want.row.code))
