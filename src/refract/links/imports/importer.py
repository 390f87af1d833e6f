"""Creating links from rows, one transaction per batch. Importing rows again changes nothing."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError, StoreBusy
from refract.core.runtime import Runtime
from refract.core.schemas import list_schema_errors
from refract.identity.models import User
from refract.links.imports.context import ImportContext, PlannedLink
from refract.links.imports.rows import Candidate, LinkRow
from refract.links.schemas import MAX_BULK_LINKS, LinkCreate
from refract.links.service import CreatedLink, KeptIdentity, NewLink, check_links, create_links
from refract.names.errors import SlugReserved, SlugTaken
from refract.names.grammar import name_key
from refract.names.service import Namespace
from refract.records.reader import UnreadableRow

BATCH_SIZE = MAX_BULK_LINKS
_MAX_ATTEMPTS = 3


class NameConflictPolicy(StrEnum):
    """What to do about a name that already leads elsewhere."""

    SKIP = "skip"
    RENAME = "rename"
    FAIL = "fail"


class LinkImportOutcome(StrEnum):
    CREATED = "created"
    EXISTS = "already here"
    SKIPPED = "skipped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class LinkImportResult:
    """The result of a row."""

    row: LinkRow
    outcome: LinkImportOutcome
    why: str | None = None
    names: Sequence[str] = ()
    remarks: Sequence[str] = ()


class _DryRunRollback(Exception):
    """Rolls back a dry run."""


class LinkImporter:
    """One import into a user's account.

    `keep_ids` lets our own links keep their ids, and so their codes: for administrators.
    """

    def __init__(
        self,
        rt: Runtime,
        space: Namespace,
        owner: User,
        *,
        conflict: NameConflictPolicy = NameConflictPolicy.SKIP,
        dry_run: bool = False,
        keep_ids: bool = False,
    ) -> None:
        self._rt = rt
        self._space = space
        self._owner = owner
        self._conflict = conflict
        self._dry_run = dry_run
        self._keep_ids = keep_ids
        self._dry_run_names: dict[str, str] = {}
        """In a dry run, the names of earlier batches and their destinations."""

    async def import_batch(self, rows: Sequence[LinkRow]) -> list[LinkImportResult]:
        """Create links from up to a thousand rows, commit, and return a result for each row."""
        done: dict[int, LinkImportResult] = {}
        wants = await self._check_rows(rows, done)
        for left in reversed(range(_MAX_ATTEMPTS)):
            try:
                done |= await self._import_in_transaction(wants)
                break
            except (
                StoreBusy,
                IntegrityError,
            ):  # a concurrent import of the same links: retry
                if not left:
                    raise
        return [done[index] for index in range(len(rows))]

    async def _check_rows(
        self, rows: Sequence[LinkRow], done: dict[int, LinkImportResult]
    ) -> dict[int, PlannedLink]:
        """Return the rows that can become links, with checked destinations.

        This may be slow, so no transaction is open.
        """
        new: dict[int, tuple[Candidate, LinkCreate]] = {}
        for index, row in enumerate(rows):
            if isinstance(row, UnreadableRow):
                done[index] = LinkImportResult(row, LinkImportOutcome.REFUSED, row.why)
                continue
            try:
                new[index] = row, LinkCreate.model_validate(row.given)
            except ValidationError as exc:
                done[index] = LinkImportResult(
                    row,
                    LinkImportOutcome.REFUSED,
                    " ".join(f"{one.field}: {one.message}" for one in list_schema_errors(exc)),
                )
        answers = await check_links(self._rt, [given for _, given in new.values()])
        wants: dict[int, PlannedLink] = {}
        for (index, (row, given)), answer in zip(new.items(), answers, strict=True):
            if isinstance(answer, NewLink):
                wants[index] = PlannedLink(
                    row,
                    answer,
                    row.number if self._keep_ids else None,
                    tuple(given.names),
                    tuple(row.remarks),
                )
            else:
                done[index] = LinkImportResult(row, LinkImportOutcome.REFUSED, answer.message)
        return wants

    async def _import_in_transaction(
        self, wants: Mapping[int, PlannedLink]
    ) -> dict[int, LinkImportResult]:
        results: dict[int, LinkImportResult] = {}
        with contextlib.suppress(_DryRunRollback):
            async with self._rt.db.write() as session:
                results = await self._import_rows(session, wants)
                if self._dry_run:
                    raise _DryRunRollback
        if self._dry_run:
            made = [
                (index, one)
                for index, one in results.items()
                if one.outcome is LinkImportOutcome.CREATED
            ]
            self._dry_run_names |= {
                name_key(name): wants[index].link.href for index, one in made for name in one.names
            }
        return results

    async def _import_rows(
        self, session: WriteSession, wants: Mapping[int, PlannedLink]
    ) -> dict[int, LinkImportResult]:
        """Create links in turns: a row waits for an earlier one that requests the same name."""
        around = ImportContext(session, self._space, self._owner.id, self._dry_run_names)
        results: dict[int, LinkImportResult] = {}
        pending = dict(wants)
        while pending:
            around.begin_turn()
            await around.load(pending.values())
            ready: dict[int, PlannedLink] = {}
            for index, want in pending.items():
                if around.is_planned(want, renaming=self._conflict is NameConflictPolicy.RENAME):
                    continue
                decided = self._find_existing(around, want) or await self._fit_names(around, want)
                if isinstance(decided, LinkImportResult):
                    results[index] = decided
                else:
                    ready[index] = decided
                    around.plan(decided)
            results |= await self._create_links(session, around, ready)
            pending = {index: want for index, want in pending.items() if index not in results}
        return results

    def _find_existing(self, around: ImportContext, want: PlannedLink) -> LinkImportResult | None:
        found = around.find_same(want)
        if found is None:
            return None
        if found.deleted:
            why = "It was deleted here: undo that, or release its name."
            return LinkImportResult(want.row, LinkImportOutcome.SKIPPED, why, want.names)
        changed = found.href != want.link.href
        return LinkImportResult(
            want.row,
            LinkImportOutcome.EXISTS,
            "It was changed here since." if changed else None,
            want.names,
        )

    async def _fit_names(
        self, around: ImportContext, want: PlannedLink
    ) -> PlannedLink | LinkImportResult:
        """Return the plan with an available code and names, or why there are none."""
        if want.number is not None and not around.is_id_free(want.number):
            want = replace(
                want,
                number=None,
                remarks=(*want.remarks, "its code cannot be kept: it has a new one"),
            )
        taken = [name for name in want.names if around.is_taken(name)]
        if taken and self._conflict is NameConflictPolicy.RENAME:
            renamed = await around.rename_taken(want)
            if renamed is None:
                return LinkImportResult(want.row, LinkImportOutcome.EXISTS, None, want.names)
            want = renamed
        elif taken:
            return self._build_conflict_result(want, SlugTaken(name=taken[0]))
        lives = not want.row.disabled and (
            want.link.given.expires_at is None
            or want.link.given.expires_at > self._space.clock.now()
        )
        if not want.names and want.number is None and not lives:
            why = (
                "It has no name and no code that could be kept, and it does not redirect: nobody"
                " could reach it."
            )
            return LinkImportResult(want.row, LinkImportOutcome.REFUSED, why)
        return want

    def _build_conflict_result(self, want: PlannedLink, problem: RefractError) -> LinkImportResult:
        skipped = self._conflict is not NameConflictPolicy.FAIL and isinstance(problem, SlugTaken)
        return LinkImportResult(
            want.row,
            LinkImportOutcome.SKIPPED if skipped else LinkImportOutcome.REFUSED,
            problem.message,
            want.names,
        )

    async def _create_links(
        self, session: WriteSession, around: ImportContext, ready: Mapping[int, PlannedLink]
    ) -> dict[int, LinkImportResult]:
        made = await create_links(
            session,
            self._rt,
            self._owner,
            [self._new_link(want) for want in ready.values()],
            charged=False,
        )
        results: dict[int, LinkImportResult] = {}
        for (index, want), answer in zip(ready.items(), made, strict=True):
            if isinstance(answer, CreatedLink):
                outcome = LinkImportOutcome.EXISTS if answer.found else LinkImportOutcome.CREATED
                results[index] = LinkImportResult(
                    want.row, outcome, None, answer.card.names, want.remarks
                )
            elif not (
                self._conflict is NameConflictPolicy.RENAME
                and isinstance(answer, SlugTaken | SlugReserved)
                and around.mark_unavailable(str(answer.facts["name"]))
            ):
                results[index] = self._build_conflict_result(want, answer)
        return results

    def _new_link(self, want: PlannedLink) -> NewLink:
        """Return the link to create.

        One without a name and a code of its own is recognised later by its destination.
        """
        alone = not want.names and want.number is None
        given = want.link.given.model_copy(
            update={"names": list(want.names), "find_if_exists": alone}
        )
        return replace(
            want.link, given=given, kept=KeptIdentity(want.number, want.row.disabled, want.row.code)
        )
