"""Creating links from rows, one transaction per batch. Importing rows again changes nothing."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound, RefractError, StoreBusy
from refract.core.runtime import Runtime
from refract.core.schemas import list_schema_errors
from refract.domains.hosts import split_address
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.models import User, UserRole
from refract.links.access import LinkCaller
from refract.links.imports.context import ImportContext, PlannedLink
from refract.links.imports.rows import Candidate, LinkRow
from refract.links.schemas import MAX_BULK_LINKS, MAX_NAMES, LinkCreate
from refract.links.service import (
    CreatedLink,
    KeptIdentity,
    NewLink,
    add_name,
    check_links,
    create_links,
)
from refract.names.errors import SlugReserved, SlugTaken
from refract.names.grammar import join_code, join_name, name_key
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
    link_id: int | None = None
    """The link that it became, with its `version`."""
    version: int | None = None


BatchRecord = Callable[[WriteSession, Sequence[LinkImportResult]], Awaitable[None]]
"""Stores the results of a batch in its transaction; of a dry run, in one of its own."""


class _DryRunRollback(Exception):
    """Rolls back a dry run."""


def _describe_error(problem: RefractError) -> str:
    """Return what is wrong with a row, with the field where one is known."""
    found = [f"{error.field}: {error.message}" for error in problem.errors]
    return " ".join(found) or problem.message


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
        self._hosts: Mapping[str, str | None] | None = None
        """The domains that rows may name; the default one is None."""

    async def import_batch(
        self, rows: Sequence[LinkRow], record: BatchRecord | None = None
    ) -> list[LinkImportResult]:
        """Create links from up to a thousand rows, commit, and return a result for each row."""
        refused: dict[int, LinkImportResult] = {}
        plans = await self._check_rows(rows, refused)
        for left in reversed(range(_MAX_ATTEMPTS)):
            try:
                return await self._import_in_transaction(plans, refused, record)
            except (
                StoreBusy,
                IntegrityError,
            ):  # a concurrent import of the same links: retry
                if not left:
                    raise
        raise AssertionError  # unreachable: the last attempt returns or raises

    async def _check_rows(
        self, rows: Sequence[LinkRow], done: dict[int, LinkImportResult]
    ) -> dict[int, PlannedLink]:
        """Return the rows that can become links, with checked destinations.

        This may be slow, so no transaction is open.
        """
        new: dict[int, tuple[Candidate, LinkCreate]] = {}
        await self._load_hosts(rows)
        for index, row in enumerate(rows):
            if isinstance(row, UnreadableRow):
                done[index] = LinkImportResult(row, LinkImportOutcome.REFUSED, row.why)
                continue
            try:
                new[index] = row, LinkCreate.model_validate(self._place_row(row))
            except ValidationError as exc:
                done[index] = LinkImportResult(
                    row,
                    LinkImportOutcome.REFUSED,
                    " ".join(
                        f"{error.field}: {error.message}" for error in list_schema_errors(exc)
                    ),
                )
        checks = await check_links(self._rt, [given for _, given in new.values()])
        plans: dict[int, PlannedLink] = {}
        for (index, (row, given)), check in zip(new.items(), checks, strict=True):
            if isinstance(check, NewLink):
                plans[index] = PlannedLink(
                    row,
                    check,
                    row.number if self._keep_ids else None,
                    tuple(given.names),
                    (*row.remarks, *self._describe_host(row)),
                )
            else:
                done[index] = LinkImportResult(
                    row, LinkImportOutcome.REFUSED, _describe_error(check)
                )
        return plans

    async def _load_hosts(self, rows: Sequence[LinkRow]) -> None:
        """Look up the domains that the user may create on, if any row names one."""
        if self._hosts is None and any(isinstance(row, Candidate) and row.host for row in rows):
            caller = DomainCaller(self._owner.id, self._owner.role == UserRole.ADMIN)
            async with self._rt.db.read() as session:
                usable = await list_usable_domains(session, caller)
            default = urlsplit(self._rt.settings.public_url).hostname or ""
            self._hosts = {domain.host: domain.host for domain in usable} | {default: None}

    def _place_row(self, row: Candidate) -> Mapping[str, Any]:
        """Return what a row gives, on the domain of its codes if there is one here."""
        host = (self._hosts or {}).get(row.host.lower()) if row.host else None
        return row.given if host is None else {**row.given, "domain": host}

    def _describe_host(self, row: Candidate) -> Sequence[str]:
        if row.host is None or row.host.lower() in (self._hosts or {}):
            return ()
        return (f"{row.host[:100]} is no domain here, so it is on the default domain",)

    async def _import_in_transaction(
        self,
        plans: Mapping[int, PlannedLink],
        refused: Mapping[int, LinkImportResult],
        record: BatchRecord | None,
    ) -> list[LinkImportResult]:
        ordered: list[LinkImportResult] = []
        with contextlib.suppress(_DryRunRollback):
            async with self._rt.db.write() as session:
                results = {**refused, **await self._import_rows(session, plans)}
                ordered = [results[index] for index in range(len(results))]
                if self._dry_run:
                    raise _DryRunRollback
                if record is not None:
                    await record(session, ordered)
        if self._dry_run:
            self._remember_names(plans, ordered)
            ordered = [replace(result, link_id=None, version=None) for result in ordered]
            if record is not None:
                async with self._rt.db.write() as session:
                    await record(session, ordered)
        return ordered

    def _remember_names(
        self, plans: Mapping[int, PlannedLink], results: Sequence[LinkImportResult]
    ) -> None:
        """Note the names that rows of a dry run would have taken."""
        self._dry_run_names |= {
            name_key(name): plans[index].link.href
            for index, result in enumerate(results)
            if result.outcome is LinkImportOutcome.CREATED
            for name in result.names
        }

    async def _import_rows(
        self, session: WriteSession, plans: Mapping[int, PlannedLink]
    ) -> dict[int, LinkImportResult]:
        """Create links in turns: a row waits for an earlier one that requests the same name."""
        context = ImportContext(session, self._space, self._owner.id, self._dry_run_names)
        results: dict[int, LinkImportResult] = {}
        pending = dict(plans)
        while pending:
            context.begin_turn()
            await context.load(pending.values())
            ready: dict[int, PlannedLink] = {}
            for index, plan in pending.items():
                if context.is_planned(plan, renaming=self._conflict is NameConflictPolicy.RENAME):
                    continue
                decided = self._find_existing(context, plan) or await self._fit_names(
                    context, context.fit_codes(plan)
                )
                if isinstance(decided, LinkImportResult):
                    results[index] = decided
                else:
                    ready[index] = decided
                    context.reserve(decided)
            results |= await self._create_links(session, context, ready)
            pending = {index: plan for index, plan in pending.items() if index not in results}
        return results

    def _find_existing(self, context: ImportContext, plan: PlannedLink) -> LinkImportResult | None:
        found = context.find_same(plan)
        if found is None:
            return None
        if found.deleted:
            why = "It was deleted here. Restore it, or release its name."
            return LinkImportResult(plan.row, LinkImportOutcome.SKIPPED, why, plan.names)
        changed = found.href != plan.link.href
        return LinkImportResult(
            plan.row,
            LinkImportOutcome.EXISTS,
            "It has been changed here since." if changed else None,
            plan.names,
        )

    async def _fit_names(
        self, context: ImportContext, plan: PlannedLink
    ) -> PlannedLink | LinkImportResult:
        """Return the plan with an available code and names, or why there are none."""
        if plan.number is not None and not context.is_id_free(plan):
            plan = replace(
                plan,
                number=None,
                remarks=(*plan.remarks, "its code can't be kept, so it has a new one"),
            )
        if lost := context.find_taken_code(plan):
            if self._conflict is not NameConflictPolicy.RENAME:
                return self._build_conflict_result(plan, SlugTaken(name=lost))
            plan = replace(plan, names=(*plan.names, *plan.codes), codes=())
        taken = [name for name in plan.names if context.is_taken(plan.build_key(name))]
        if taken and self._conflict is NameConflictPolicy.RENAME:
            renamed = await context.rename_taken(plan)
            if renamed is None:
                return LinkImportResult(plan.row, LinkImportOutcome.EXISTS, None, plan.names)
            plan = renamed
        elif taken:
            return self._build_conflict_result(plan, SlugTaken(name=taken[0]))
        lives = not plan.row.disabled and (
            plan.link.given.expires_at is None
            or plan.link.given.expires_at > self._space.clock.now()
        )
        if not (plan.names or plan.codes) and plan.number is None and not lives:
            why = "It has no name or code to keep and doesn't redirect, so it would be unreachable."
            return LinkImportResult(plan.row, LinkImportOutcome.REFUSED, why)
        return plan

    def _build_conflict_result(self, plan: PlannedLink, problem: RefractError) -> LinkImportResult:
        skipped = self._conflict is not NameConflictPolicy.FAIL and isinstance(problem, SlugTaken)
        return LinkImportResult(
            plan.row,
            LinkImportOutcome.SKIPPED if skipped else LinkImportOutcome.REFUSED,
            problem.message,
            plan.names,
        )

    async def _create_links(
        self, session: WriteSession, context: ImportContext, ready: Mapping[int, PlannedLink]
    ) -> dict[int, LinkImportResult]:
        outcomes = await create_links(
            session,
            self._rt,
            self._owner,
            [self._new_link(plan) for plan in ready.values()],
            charged=False,
        )
        results: dict[int, LinkImportResult] = {}
        for (index, plan), result in zip(ready.items(), outcomes, strict=True):
            if isinstance(result, CreatedLink):
                results[index] = await self._finish_link(session, plan, result)
            elif not self._can_retry(context, plan, result):
                results[index] = self._build_conflict_result(plan, result)
        return results

    async def _finish_link(
        self, session: WriteSession, plan: PlannedLink, made: CreatedLink
    ) -> LinkImportResult:
        """Give a new link its names on other domains; those that it can't have are remarks."""
        if made.found:
            outcome = LinkImportOutcome.EXISTS
            return LinkImportResult(plan.row, outcome, None, made.card.names, plan.remarks)
        caller = LinkCaller(self._owner.id, is_admin=self._owner.role == UserRole.ADMIN)
        names, remarks = [*made.card.names], [*plan.remarks]
        link_id, version = made.card.link.id, made.card.link.version
        for text in plan.row.other_names[:MAX_NAMES]:
            host, name = split_address(self._rt.settings.public_url, text)
            try:
                named = await add_name(session, self._space, caller, link_id, name, host=host)
                version = named.link.version
                names.append(join_name(host, name))
            except (Conflict, Forbidden, Invalid, NotFound) as exc:
                remarks.append(f"{text} isn't kept: {exc.message}")
        outcome, notes = LinkImportOutcome.CREATED, tuple(remarks)
        return LinkImportResult(plan.row, outcome, None, names, notes, link_id, version)

    def _can_retry(self, context: ImportContext, plan: PlannedLink, refused: RefractError) -> bool:
        """Return whether a row is tried again: its code is kept then, or its name changed."""
        if not isinstance(refused, SlugTaken | SlugReserved):
            return False
        name = str(refused.facts["name"])
        renames = self._conflict is NameConflictPolicy.RENAME
        if name in plan.codes:
            return renames and context.mark_unavailable(join_code(plan.link.domain, name))
        return bool(renames or name in plan.row.codes) and context.mark_unavailable(
            plan.build_key(name)
        )

    def _new_link(self, plan: PlannedLink) -> NewLink:
        """Return the link to create.

        One without a name and a code of its own is recognised later by its destination.
        """
        alone = not (plan.names or plan.codes) and plan.number is None
        given = plan.link.given.model_copy(
            update={"names": list(plan.names), "find_if_exists": alone}
        )
        kept = KeptIdentity(
            *(plan.number, plan.row.disabled, plan.row.code, plan.codes, plan.row.created_at),
            plan.row.clicks_left,
        )
        return replace(plan.link, given=given, kept=kept)
