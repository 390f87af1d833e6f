"""What the pages of teams share."""

from typing import Annotated

from fastapi import Form

from refract.teams.models import TeamRole
from refract.web.i18n import lazy_gettext

PATH = "/app/teams"
ROLE_LABELS = {
    TeamRole.MEMBER: lazy_gettext("Member"),
    TeamRole.MANAGER: lazy_gettext("Manager"),
}
NameField = Annotated[str, Form(max_length=200)]
HandleField = Annotated[str, Form(max_length=200)]
