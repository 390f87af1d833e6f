"""What can go wrong with a UTM template."""

from refract.core.errors import Conflict, Invalid, NotFound


class UtmTemplateNotFound(NotFound):
    """UTM template not found. It may have been deleted."""


class UtmTemplateExists(Conflict):
    """There's already a UTM template with the name "{name}". Choose another name."""


class TooManyUtmTemplates(Conflict):
    """You can have at most {limit} UTM templates, and so can each team. Delete one first."""


class UtmTemplateEmpty(Invalid):
    """A UTM template needs at least one parameter."""


class AmbiguousUtmTemplate(Invalid):
    """Several of your teams have a UTM template with the name "{name}". Use its id."""
