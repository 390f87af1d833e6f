"""The existing links, taken names and free codes that matter to a batch of rows."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.core.ids import encode_base62, get_min_id
from refract.links.imports.rows import Candidate
from refract.links.queries.bulk import ExistingLink, find_existing_links, find_purged_ids
from refract.links.service import NewLink
from refract.names.enums import NameTarget
from refract.names.grammar import (
    MAX_LINK_NAME_LENGTH,
    join_code,
    join_name,
    name_key,
    validate_name,
)
from refract.names.queries import find_names
from refract.names.service import Namespace

_BATCH_SIZE = 20


@dataclass(frozen=True, slots=True)
class PlannedLink:
    """A row to import. `names` and `number` are those it will get, not always those of the file."""

    row: Candidate
    link: NewLink
    number: int | None
    names: tuple[str, ...]
    remarks: tuple[str, ...]
    codes: tuple[str, ...] = ()
    """Codes to keep letter for letter, because they cannot be names."""

    @property
    def keys(self) -> list[str]:
        """Return the keys of its names and kept codes on its domain."""
        codes = [join_code(self.link.domain, code) for code in self.codes]
        return [*(self.build_key(name) for name in self.names), *codes]

    @property
    def possible_keys(self) -> list[str]:
        """Return the same with both readings of the codes of its row."""
        codes = self.row.codes
        exact = [join_code(self.link.domain, code) for code in codes]
        return [*self.keys, *exact, *map(self.build_key, codes)]

    @property
    def code_texts(self) -> list[str]:
        """Return the codes of its row as they would be spelled, as names and kept."""
        joins = (join_code, join_name)
        return [join(self.link.domain, code) for code in self.row.codes for join in joins]

    @property
    def code_key(self) -> str | None:
        """Return the comparison key of the code that it keeps, if any."""
        return None if self.number is None else self.build_key(encode_base62(self.number))

    def build_key(self, name: str) -> str:
        return name_key(join_name(self.link.domain, name))


class ImportContext:
    """Lookups for all rows of a turn. `tried` has names that earlier batches of a dry run took."""

    def __init__(
        self,
        session: WriteSession,
        space: Namespace,
        user_id: int,
        dry_run_names: Mapping[str, str],
    ) -> None:
        self._session = session
        self._space = space
        self._user_id = user_id
        self._dry_run_names = dry_run_names
        self._names: dict[str, ExistingLink | None] = {}
        self._links: dict[int, ExistingLink] = {}
        self._purged_ids: set[int] = set()
        self._planned: dict[str, str] = {}
        self._spellings: set[str] = set()
        """Taken names as they are spelled, with their domain."""
        self._planned_texts: set[str] = set()
        """The same of names and kept codes that rows of this turn are about to take."""
        self._unavailable: set[str] = set()

    def begin_turn(self) -> None:
        self._names, self._links, self._planned = {}, {}, {}
        self._spellings, self._planned_texts = set(), set()

    async def load(self, plans: Iterable[PlannedLink]) -> None:
        plans = list(plans)
        numbers = {plan.number for plan in plans if plan.number is not None}
        keys = {
            key for plan in plans for key in (*plan.possible_keys, plan.code_key) if key is not None
        }
        self._purged_ids = await find_purged_ids(self._session, numbers)
        self._links = await find_existing_links(self._session, numbers, self._user_id)
        await self._load_names(keys)

    async def _load_names(self, keys: Collection[str]) -> None:
        names = await find_names(self._session, keys)
        links = await find_existing_links(
            self._session, {name.target_id for name in names.values()}, self._user_id
        )
        self._names |= {key: links.get(name.target_id) for key, name in names.items()}
        self._spellings |= {name.name for name in names.values()}
        self._names |= {
            key: ExistingLink(self._dry_run_names[key], mine=True, deleted=False)
            for key in keys
            if key in self._dry_run_names
        }

    def is_planned(self, plan: PlannedLink, *, renaming: bool) -> bool:
        """Return whether an earlier row of this turn is about to take the same name or code.

        A row that can be renamed does not have to wait.
        """
        clashing = [self._planned[key] for key in plan.keys if key in self._planned]
        code = plan.code_key is not None and plan.code_key in self._planned
        code = code or not self._planned_texts.isdisjoint(plan.code_texts)
        return code or (bool(clashing) and not (renaming and plan.link.href not in clashing))

    def reserve(self, plan: PlannedLink) -> None:
        self._planned |= dict.fromkeys(plan.keys, plan.link.href)
        self._planned_texts |= {join_name(plan.link.domain, name) for name in plan.names}
        self._planned_texts |= {join_code(plan.link.domain, code) for code in plan.codes}
        if plan.code_key is not None:
            self._planned[plan.code_key] = plan.link.href

    def find_same(self, plan: PlannedLink) -> ExistingLink | None:
        """Return the link that this row became before, by its id or by a name with the same URL."""
        by_id = self._links.get(plan.number) if plan.number is not None else None
        if by_id is not None and by_id.mine:
            return by_id
        return next(
            (
                existing
                for existing in map(self._names.get, plan.possible_keys)
                if existing and existing.mine and existing.href == plan.link.href
            ),
            None,
        )

    def is_id_free(self, plan: PlannedLink) -> bool:
        """Return whether the id of a plan is unused, never was used, and can't be assigned.

        Its code must not be a name either. If another process takes it now, the primary key
        decides.
        """
        key, number = plan.code_key, plan.number
        if key is None or number is None:
            return False
        past = number < get_min_id(self._space.clock.now())
        unnamed = key not in self._names and key not in self._space.reserved
        return unnamed and past and number not in self._links and number not in self._purged_ids

    def fit_codes(self, plan: PlannedLink) -> PlannedLink:
        """Return the plan with the codes of its row: as names where they can be, else kept."""
        names, codes = list(plan.names), list[str]()
        for code in plan.row.codes:
            key = plan.build_key(code)
            is_name = not (plan.row.keeps_codes or self.is_taken(key))
            is_name = is_name and self._is_valid_name(code, plan.link.domain)
            (names if is_name else codes).append(code)
        return replace(plan, names=tuple(names), codes=tuple(codes))

    def _is_valid_name(self, code: str, domain: str | None) -> bool:
        try:
            validate_name(code, NameTarget.LINK, self._space.reserved, host=domain or "")
        except RefractError:
            return False
        return True

    def find_taken_code(self, plan: PlannedLink) -> str | None:
        """Return the first code to keep that another link has, letter for letter, or None."""
        for code in plan.codes:
            exact, name = join_code(plan.link.domain, code), join_name(plan.link.domain, code)
            if self.is_taken(exact) or name in self._spellings:
                return code
        return None

    def is_taken(self, key: str) -> bool:
        return key in self._names or key in self._planned or key in self._unavailable

    def mark_unavailable(self, key: str) -> bool:
        """Mark a name as unavailable; return False if it already was."""
        new = key not in self._unavailable
        self._unavailable.add(key)
        return new

    async def rename_taken(self, plan: PlannedLink) -> PlannedLink | None:
        """Return the plan with new names for taken ones.

        Return None if an earlier import already renamed it so.
        """
        names: list[str] = []
        for name in plan.names:
            new_name = (
                await self._find_free_name(plan, name)
                if self.is_taken(plan.build_key(name))
                else name
            )
            if new_name is None:
                return None
            names.append(new_name)
        changed = [
            f'"{old}" is now "{new}"'
            for old, new in zip(plan.names, names, strict=True)
            if old != new
        ]
        return replace(plan, names=tuple(names), remarks=(*plan.remarks, *changed))

    async def _find_free_name(self, plan: PlannedLink, name: str) -> str | None:
        for start in count(2, _BATCH_SIZE):
            candidates = [
                f"{name[: MAX_LINK_NAME_LENGTH - len(str(number)) - 1]}-{number}"
                for number in range(start, start + _BATCH_SIZE)
            ]
            await self._load_names(
                {plan.build_key(candidate) for candidate in candidates} - set(self._names)
            )
            for candidate in candidates:
                existing = self._names.get(plan.build_key(candidate))
                if existing is not None and existing.mine and existing.href == plan.link.href:
                    return None
                if not self.is_taken(plan.build_key(candidate)):
                    return candidate
        raise AssertionError  # unreachable: names never run out
