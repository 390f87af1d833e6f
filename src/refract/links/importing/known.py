"""What stands around the rows of a batch: links that are there, names that are taken, codes that are free."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from refract.core.db import WriteSession
from refract.core.ids import encode, first_id_at
from refract.links.importing.rows import Candidate
from refract.links.queries.stream import Known, buried, known_links
from refract.links.service import NewLink
from refract.names.grammar import LONGEST_LINK_NAME, name_key
from refract.names.queries import find_names
from refract.names.service import Namespace

_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Want:
    """A row on its way: `names` and `number` are what it will get, which may not be what it brought."""

    row: Candidate
    link: NewLink
    number: int | None
    names: tuple[str, ...]
    remarks: tuple[str, ...]


class Surroundings:
    """Looked up for all rows of a turn at once. `tried` are names that a dry run has given away before."""

    def __init__(self, session: WriteSession, space: Namespace, user_id: int, tried: Mapping[str, str]) -> None:
        self._session = session
        self._space = space
        self._user_id = user_id
        self._tried = tried
        self._names: dict[str, Known | None] = {}
        self._links: dict[int, Known] = {}
        self._buried: set[int] = set()
        self._planned: dict[str, str] = {}
        self._given_up: set[str] = set()

    def begin_turn(self) -> None:
        self._names, self._links, self._planned = {}, {}, {}

    async def look(self, wants: Iterable[Want]) -> None:
        wants = list(wants)
        numbers = {want.number for want in wants if want.number is not None}
        keys = {name_key(name) for want in wants for name in want.names} | {name_key(encode(number)) for number in numbers}
        self._buried = await buried(self._session, numbers)
        self._links = await known_links(self._session, numbers, self._user_id)
        await self._look_for(keys)

    async def _look_for(self, keys: Collection[str]) -> None:
        names = await find_names(self._session, keys)
        links = await known_links(self._session, {name.target_id for name in names.values()}, self._user_id)
        self._names |= {key: links.get(name.target_id) for key, name in names.items()}
        self._names |= {key: Known(self._tried[key], mine=True, deleted=False) for key in keys if key in self._tried}

    def planned(self, want: Want, *, renaming: bool) -> bool:
        """Whether a row before this one is about to get what this one wishes for; who can take another name need not wait."""
        clashing = [self._planned[key] for key in map(name_key, want.names) if key in self._planned]
        code = want.number is not None and name_key(encode(want.number)) in self._planned
        return code or (bool(clashing) and not (renaming and want.link.href not in clashing))

    def plan(self, want: Want) -> None:
        self._planned |= {name_key(name): want.link.href for name in want.names}
        if want.number is not None:
            self._planned[name_key(encode(want.number))] = want.link.href

    def same(self, want: Want) -> Known | None:
        """The link that this row was made into before: by its id, or by a name that leads to the same place."""
        by_id = self._links.get(want.number) if want.number is not None else None
        if by_id is not None and by_id.mine:
            return by_id
        return next((held for held in map(self._holder, want.names) if held and held.mine and held.href == want.link.href), None)

    def id_is_free(self, number: int) -> bool:
        """No link has it, had it or will get it, and its code is nobody's name. Should another process take it now, its key decides."""
        key = name_key(encode(number))
        past = number < first_id_at(self._space.clock.now())
        unnamed = key not in self._names and key not in self._space.reserved
        return unnamed and past and number not in self._links and number not in self._buried

    def is_taken(self, name: str) -> bool:
        key = name_key(name)
        return key in self._names or key in self._planned or key in self._given_up

    def give_up(self, name: str) -> bool:
        """Note that a name cannot be had after all; False when that was known before."""
        key = name_key(name)
        new = key not in self._given_up
        self._given_up.add(key)
        return new

    async def renamed(self, want: Want) -> Want | None:
        """The want with other names in place of those that are taken; None when it came under such a name before."""
        names: list[str] = []
        for name in want.names:
            other = await self._other_name(name, want.link.href) if self.is_taken(name) else name
            if other is None:
                return None
            names.append(other)
        changed = [f'"{old}" is now "{new}"' for old, new in zip(want.names, names, strict=True) if old != new]
        return replace(want, names=tuple(names), remarks=(*want.remarks, *changed))

    async def _other_name(self, name: str, href: str) -> str | None:
        for start in count(2, _AT_ONCE):
            others = [f"{name[: LONGEST_LINK_NAME - len(str(number)) - 1]}-{number}" for number in range(start, start + _AT_ONCE)]
            await self._look_for({name_key(other) for other in others} - set(self._names))
            for other in others:
                held = self._holder(other)
                if held is not None and held.mine and held.href == href:
                    return None
                if not self.is_taken(other):
                    return other
        raise AssertionError  # names never run out

    def _holder(self, name: str) -> Known | None:
        return self._names.get(name_key(name))
