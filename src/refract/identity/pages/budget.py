"""What the settings show of the assistant's budget. Who keeps it stands above and hands it in when the program is composed."""

from collections.abc import Awaitable, Callable
from typing import Any

from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.identity.models import User

OfPerson = Callable[[ReadSession, Runtime, User], Awaitable[dict[str, Any]]]


class Budget:
    """Nothing, until somebody keeps one."""

    def __init__(self, _rt: Runtime) -> None:
        self.of_person: OfPerson | None = None
        """How a person stands today, as `identity/settings.html` wants it."""
