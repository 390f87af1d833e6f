"""One table per run: what was counted, what was promised, and whether it held."""

import json
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


@dataclass
class Report:
    """Lines that are printed in the end.

    A line with a bar that was missed makes the whole proof fail.
    """

    title: str
    seed: int
    rows: list[tuple[str, str, str, bool]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def say(self, what: str, value: object) -> None:
        """A figure without a promise."""
        self.rows.append((what, _text(value), "", True))

    def bar(
        self, what: str, value: object, promise: str, *, held: bool, timed: bool = False
    ) -> None:
        """A promise; one that a busy machine may miss (`timed`) is forgiven by a test and not by a
        proof.
        """
        self.rows.append((what, _text(value), promise, held))
        if timed and not held:
            self.late.append(what)

    def none(self, what: str, number: int) -> None:
        """Something that must not happen at all."""
        self.bar(what, number, "0", held=number == 0)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    @property
    def held(self) -> bool:
        return all(row[3] for row in self.rows)

    @property
    def broken(self) -> list[str]:
        """What did not hold, seconds aside.

        How much that is may depend on what else the machine does.
        """
        return [
            f"{what}: {value} (promised: {promise})"
            for what, value, promise, held in self.rows
            if not held and what not in self.late
        ]

    def __str__(self) -> str:
        width = max((len(row[0]) for row in self.rows), default=0)
        middle = max((len(row[1]) for row in self.rows), default=0)
        lines = [f"{self.title} · seed {self.seed}"]
        for what, value, promise, held in self.rows:
            verdict = "" if not promise else "held" if held else "BROKEN"
            lines.append(f"  {what:{width}}  {value:>{middle}}  {promise:12} {verdict}".rstrip())
        lines += [f"  {sentence}" for sentence in self.notes]
        return "\n".join(lines)

    def show(self) -> bool:
        """Print it; the answer is whether everything held."""
        print(self, flush=True)
        return self.held

    def save(self, name: str) -> None:
        """Beside the machine's description, so that a document can quote it."""
        RESULTS.mkdir(exist_ok=True)
        machine = {
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
        }
        figures = [
            {"what": what, "value": value, "promise": promise, "held": held}
            for what, value, promise, held in self.rows
        ]
        result = {
            "title": self.title,
            "seed": self.seed,
            "machine": machine,
            "load_average": os.getloadavg()[0],
            "figures": figures,
        }
        (RESULTS / f"{name}.json").write_text(
            json.dumps(result | {"notes": self.notes}, indent=2, ensure_ascii=False) + "\n"
        )


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
