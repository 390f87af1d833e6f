"""Errors of teams."""

from refract.core.errors import Conflict, Forbidden, Invalid, NotFound


class TeamNotFound(NotFound):
    """Team not found."""


class TeamCreationForbidden(Forbidden):
    """Only administrators can create teams here."""


class NotTeamManager(Forbidden):
    """Only managers of the team can do this."""


class TeamSlugTaken(Conflict):
    """There's already a team with the handle "{slug}". Choose another one."""


class InvalidTeamSlug(Invalid):
    """Use up to 50 lowercase letters, digits and hyphens. Start with a letter or digit."""


class TeamMemberExists(Conflict):
    """They're already a member of this team."""


class TeamMemberNotFound(NotFound):
    """They aren't a member of this team."""


class LastTeamManager(Conflict):
    """A team needs a manager. Make someone else a manager first, or delete the team."""


class TooManyTeamMembers(Conflict):
    """A team can have {limit} members."""


class TeamOwnsLinks(Conflict):
    """This team still owns links ({count}). Transfer or delete them first."""


class TeamOwnsLists(Conflict):
    """This team still owns lists ({count}). Transfer or delete them first."""


class UnknownGroupIssuer(Conflict):
    """No identity provider "{name}" with a `groups_claim` is configured."""
