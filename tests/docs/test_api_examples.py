"""The examples of the API documentation are those of a run."""

from pathlib import Path

from refract.web.schema_examples import load_examples
from tools.api_examples import record_examples


async def test_the_examples_are_those_of_a_run(tmp_path: Path) -> None:
    recorded = await record_examples(tmp_path)

    assert load_examples() == recorded, "run `make docs` and commit what it writes"
    assert len(recorded) > 60
    assert recorded["create_link"]["response"]["short_url"] == "https://go.example.com/roadmap"
