"""Changes of links and names, as caches hear of them. Loads no database code."""

from dataclasses import dataclass

CHANGES_TOPIC = "refract_links"
"""The topic within a process, and the channel on PostgreSQL."""

ALL_TARGETS = 0
"""Instead of a target: drop everything, for instance because a domain was blocked."""


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A changed target, with every comparison key under which it may be cached.

    `names` has the keys before and after the change; the code follows from the id.
    """

    target_id: int
    version: int
    names: tuple[str, ...]
