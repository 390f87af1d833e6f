"""The examples of the API documentation are those of a run."""

from pathlib import Path
from typing import Any

from refract.web.schema_examples import load_examples
from tools.api_examples import record_examples


def _shape(value: Any) -> Any:
    """Return the fields and types of a value."""
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner) for inner in value]
    return type(value).__name__


async def test_the_examples_are_those_of_a_run(tmp_path: Path) -> None:
    recorded = await record_examples(tmp_path)

    assert _shape(load_examples()) == _shape(recorded), "run `make docs` and commit what it writes"
    assert len(recorded) > 60
    assert recorded["create_link"]["response"]["short_url"] == "https://go.example.com/roadmap"
