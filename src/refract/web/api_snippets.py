"""Calls of the API in curl, Python and JavaScript. The API key is read from the environment."""

import json
import shlex
from dataclasses import dataclass
from typing import Any, Final

_LINE_LENGTH: Final = 60
LANGUAGES: Final = {"curl": "curl", "python": "Python", "javascript": "JavaScript"}
"""Languages of snippets by the name that the page uses."""


@dataclass(frozen=True)
class ApiCall:
    """A call that a snippet makes. `upload` is the name of a file that is the body."""

    method: str
    url: str
    needs_key: bool
    body: Any = None
    upload: str | None = None
    is_json: bool = True
    """Whether the response is JSON."""

    def to_snippets(self) -> dict[str, str]:
        """Return the call in each language."""
        return {
            "curl": self._to_curl(),
            "python": self._to_python(),
            "javascript": self._to_javascript(),
        }

    def _to_curl(self) -> str:
        lines = ["curl" if self.method == "GET" else f"curl -X {self.method}"]
        lines[0] += f" {shlex.quote(self.url)}"
        if self.needs_key:
            lines.append('-H "X-API-Key: $API_KEY"')
        if self.upload is not None:
            lines.append(f"--data-binary @{self.upload}")
        if self.body is not None:
            lines.append("-H 'Content-Type: application/json'")
            text = json.dumps(self.body, ensure_ascii=False)
            if len(text) > _LINE_LENGTH:
                text = json.dumps(self.body, ensure_ascii=False, indent=2).replace("\n", "\n  ")
            lines.append(f"-d {shlex.quote(text)}")
        return " \\\n  ".join(lines)

    def _to_python(self) -> str:
        arguments = [f'"{self.url}"']
        if self.needs_key:
            arguments.append('headers={"X-API-Key": os.environ["API_KEY"]}')
        if self.upload is not None:
            arguments.append(f'content=open("{self.upload}", "rb")')
        if self.body is not None:
            arguments.append(f"json={_to_python_literal(self.body)}")
        inner = "".join(f"    {argument},\n" for argument in arguments)
        head = "import os\n\nimport httpx\n\n" if self.needs_key else "import httpx\n\n"
        shown = "response.json()" if self.is_json else "response.status_code"
        return f"{head}response = httpx.{self.method.lower()}(\n{inner})\nprint({shown})"

    def _to_javascript(self) -> str:
        headers = ['"X-API-Key": process.env.API_KEY'] if self.needs_key else []
        if self.body is not None:
            headers.append('"Content-Type": "application/json"')
        options = [f'method: "{self.method}"'] if self.method != "GET" else []
        if headers:
            options.append(f"headers: {{ {', '.join(headers)} }}")
        if self.upload is not None:
            options.append(f'body: await readFile("{self.upload}")')
        if self.body is not None:
            text = json.dumps(self.body, indent=2, ensure_ascii=False).replace("\n", "\n  ")
            options.append(f"body: JSON.stringify({text})")
        given = "".join(f"  {option},\n" for option in options)
        call = f'fetch("{self.url}", {{\n{given}}})' if options else f'fetch("{self.url}")'
        shown = "await response.json()" if self.is_json else "response.status"
        head = 'import { readFile } from "node:fs/promises";\n\n' if self.upload else ""
        return f"{head}const response = await {call};\nconsole.log({shown});"


def _to_python_literal(value: Any) -> str:
    """Return JSON as Python, indented like an argument."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    for word, literal in (("true", "True"), ("false", "False"), ("null", "None")):
        for before, after in ((": ", ","), (": ", "\n"), ("    ", ","), ("    ", "\n")):
            text = text.replace(f"{before}{word}{after}", f"{before}{literal}{after}")
    return text.replace("\n", "\n    ")
