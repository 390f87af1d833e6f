"""Ground for state machines: a runtime that plain functions can drive, empty at the start of every
run.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.errors import RefractError
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.migrations.tables import metadata
from tests.compiled import share_compiled_statements
from tests.conftest import START, make_settings
from tests.emptying import find_filled

Result = TypeVar("Result")


class Ground:
    """One event loop and one database for all runs of a machine."""

    def __init__(self, database: str, data_dir: Path) -> None:
        self.runner = asyncio.Runner()
        self._settings = make_settings(data_dir, database_url=database)
        self.db = Database(self._settings)
        share_compiled_statements(self.db)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)

    def fresh(self) -> Runtime:
        """An empty database and a clock at the start."""
        self.run(self._wipe())
        clock = ManualClock(START)
        return Runtime(
            settings=self._settings,
            db=self.db,
            clock=clock,
            ids=SnowflakeGenerator(1, clock, wait=clock.advance),
            secret=Secret(b"s" * 40),
        )

    async def _wipe(self) -> None:
        async with self.db.engine.begin() as connection:
            filled = await find_filled(connection, metadata.tables)
            for table in reversed(metadata.sorted_tables):
                if table.name in filled:
                    await connection.execute(table.delete())

    def close(self) -> None:
        self.run(self.db.close())
        self.runner.close()


class Machine(RuleBasedStateMachine):
    """A state machine on a fresh runtime."""

    ground: Ground

    def __init__(self) -> None:
        super().__init__()
        self.rt = self.ground.fresh()

    @property
    def clock(self) -> ManualClock:
        clock = self.rt.clock
        assert isinstance(clock, ManualClock)
        return clock

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.ground.run(work)

    def outcome(self, work: Coroutine[Any, Any, Any]) -> type[RefractError] | None:
        """Do something in a transaction of its own; the answer is the error that refused it."""
        try:
            self.run(work)
        except RefractError as exc:
            return type(exc)
        return None


def size(name: str, usual: int) -> int:
    """How large a test is: as in `make test`, unless a proof asks for more by REFRACT_TEST_…"""
    return int(os.environ.get(f"REFRACT_TEST_{name}", usual))


def run_machine(
    machine: type[Machine], database: str, data_dir: Path, *, examples: int = 12, steps: int = 25
) -> None:
    """Run the machine against the database, as often and as long as the size says.

    Half as often on a server: what a machine looks for is mostly in the code above the database,
    and `make proof machines` runs all of them hundreds of times on each.
    """
    if not database.startswith("sqlite"):
        examples //= 2
    ground = Ground(database, data_dir)
    on_it = type(machine.__name__, (machine,), {"ground": ground})
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    chosen = settings(
        max_examples=size("EXAMPLES", examples),
        stateful_step_count=size("STEPS", steps),
        deadline=None,
        suppress_health_check=quiet,
        print_blob=True,
    )
    try:
        run_state_machine_as_test(on_it, settings=chosen)
    finally:
        ground.close()


Step = Callable[[], Coroutine[Any, Any, Any]]
