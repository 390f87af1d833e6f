"""Schema and code of different versions.

Findings: `/ready` was green on a schema older than the code; old code did not start on any newer
schema; nothing said what going back loses.
"""

import subprocess
from pathlib import Path

import pytest
from httpx import AsyncClient
from sqlalchemy import inspect, text

from proofs.harness.versions import Version, next_version
from refract import migrations
from refract.core.db.schema_state import SchemaTooNew
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.migrations.losses import rehearse_downgrade
from tests import make
from tests.serving import refract
from tests.waiting import PATIENCE
from tools.serving import command, environment

BEFORE = migrations.list_revisions()[-2]


async def _set_revision(rt: Runtime, revision: str) -> None:
    async with rt.db.engine.begin() as connection:
        await connection.execute(
            text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision}
        )


async def test_readiness_compares_schema_and_code(client: AsyncClient, rt: Runtime) -> None:
    async with rt.db.write() as session:
        owner = await make.person(session, rt, "ada")
        await make.link(session, rt, owner, names=["there"])
    assert (await client.get("/ready")).status_code == 200
    try:
        await _set_revision(rt, BEFORE)
        answer = await client.get("/ready")
        assert answer.status_code == 503
        assert "refract migrate" in answer.json()["dependencies"]["schema"]["detail"]
        assert (await client.get("/there")).status_code == 302  # where it can, it goes on

        await _set_revision(rt, "9999")
        assert (
            await client.get("/ready")
        ).status_code == 200  # newer, and nothing says that we cannot work on it

        async with rt.db.engine.begin() as connection:
            await connection.execute(
                text("INSERT INTO schema_requirements (revision, version) VALUES ('9998', '7.0.0')")
            )
        refused = await client.get("/ready")
        assert (
            refused.status_code,
            "7.0.0" in refused.json()["dependencies"]["schema"]["detail"],
        ) == (503, True)
        with pytest.raises(SchemaTooNew, match="upgraded by a newer Refract"):
            await migrations.upgrade(rt.db)
    finally:
        await _set_revision(rt, migrations.HEAD)


def _by(version: Version, data: Path, *words: str) -> tuple[int, str]:
    """Run a command of another version, which only a new interpreter can load."""
    done = subprocess.run(
        [*command(*words), "--data-dir", str(data)],
        env=environment() | {"PYTHONPATH": str(version.path)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_version_that_is_not_additive_keeps_older_code_out_until_it_goes_back(
    tmp_path: Path,
) -> None:
    newer, data = next_version(tmp_path, breaking=True), tmp_path / "data"
    assert _by(newer, data, "migrate")[0] == 0

    code, said = (
        refract("shorten", "https://example.com", "--data-dir", str(data)).returncode,
        _by(newer, data, "migrate", "--status")[1],
    )
    refused = refract("links", "list", "--data-dir", str(data))
    assert (code, refused.returncode, newer.revision in said) == (2, 2, True)
    assert "Start Refract 99.0.0 or newer" in refused.stderr

    assert _by(newer, data, "migrate", "--to", migrations.HEAD, "--yes")[0] == 0
    assert refract("shorten", "https://example.com", "--data-dir", str(data)).returncode == 0


async def test_what_going_back_loses_is_what_is_lost(tmp_path: Path) -> None:
    async def tables() -> dict[str, set[str]]:
        def read(connection: object) -> dict[str, set[str]]:
            found = inspect(connection)
            return {
                name: {column["name"] for column in found.get_columns(name)}
                for name in found.get_table_names()
            }

        async with db.engine.connect() as connection:
            return {
                name: columns
                for name, columns in (await connection.run_sync(read)).items()
                if "_fts" not in name
            }

    db = Database(Settings(data_dir=tmp_path))
    await migrations.upgrade(db)
    before = await tables()
    for path in sorted((migrations.MIGRATIONS_DIR / "versions").glob("[0-9]*.py"), reverse=True):
        older = [revision for revision in migrations.list_revisions() if revision < path.stem[:4]]
        await migrations.downgrade(db, older[-1] if older else "base")
        after = await tables()
        gone: set[tuple[str, str | None]] = {(name, None) for name in before.keys() - after.keys()}
        gone |= {(name, column) for name in after for column in before[name] - after[name]}
        assert set(rehearse_downgrade(path, "sqlite")) == gone, path.name
        before = after
    await db.close()
