"""Changes of links and names, as caches hear of them. Loads no database code."""

from dataclasses import dataclass

CHANGES_TOPIC = "refract_links"
"""The topic within a process, and the channel on PostgreSQL."""

ALL_TARGETS = 0
"""Instead of a target: drop everything, for instance because a domain was blocked.

With names that are hosts and a slash, the domains with these hosts have changed, and nothing else.
Older versions drop everything.
"""


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A changed target, with every name under which it may be cached.

    `names` has the names before and after the change, or their keys, and its code as it is spelled.
    Only the code of an id on the default domain is left out, since it follows from the id.
    """

    target_id: int
    version: int
    names: tuple[str, ...]

    @property
    def is_of_domains(self) -> bool:
        """Return whether settings of domains have changed, rather than links."""
        return self.target_id == ALL_TARGETS and bool(self.names)


def build_domain_change(host: str) -> TargetChange:
    """Return the change of a domain that was created, changed or deleted."""
    return TargetChange(ALL_TARGETS, 0, (f"{host}/",))
