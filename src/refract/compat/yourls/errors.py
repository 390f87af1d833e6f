"""What is wrong with a call of YOURLS' API."""

from typing import Any

from refract.core.errors import Malformed


class YourlsFailure(Malformed):
    """{message}"""

    def __init__(self, answer: dict[str, Any], simple: str = "") -> None:
        self.answer = answer
        self.simple = simple
        super().__init__(message=str(answer.get("message", "")))
