"""One test body, three databases.

Ask for `rt` (or `database`) and the test runs on each of them.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from httpx import AsyncClient
from hypothesis import settings as hypothesis_settings
from sqlalchemy import make_url, text

from refract import migrations
from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.model import Settings
from tests.client import client_of
from tests.compiled import share_templates
from tests.emptying import close_databases, empty_database, run_beside_tests
from tests.lasting import choose_loop_factory, end_loop, get_loop, open_database
from tests.lasting_processes import end_processes, own_processes, share_processes
from tools import packages
from tools.servers import Redis as RedisServer
from tools.servers import free_port

__all__ = ["own_processes"]

# Processes that tests start import what they are handed, also from here.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
)
START = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
DIALECTS = ("sqlite", "postgresql", "mysql")
_prepared: dict[str, str] = {}
hypothesis_settings.register_profile("refract", deadline=None)  # a busy machine is slow
hypothesis_settings.load_profile("refract")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], Any]]:
    return {"lasting": choose_loop_factory(item)}


def pytest_collection_finish() -> None:
    """Leave what collection has built out of garbage collection: it stays until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine leaks into a test."""
    for name in list(os.environ):
        if name.startswith("REFRACT_") and not name.startswith("REFRACT_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True, scope="session")
def _plain_logs() -> None:
    """structlog's own default draws every traceback with all its variables, which takes seconds
    each.
    """
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()]
    )


@pytest.fixture(autouse=True, scope="session")
def _shared_templates() -> None:
    share_templates()


@pytest.fixture(autouse=True, scope="session")
def _shared_processes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        share_processes(patch)
        yield


def make_settings(data_dir: Path, **given: Any) -> Settings:
    """An installation that lets strangers publish lists under names they choose, unless told
    otherwise.
    """
    usual = {"base_url": "http://go.test", "secret_key": "s" * 40, "log_format": "json"}
    open_to_strangers = {"anonymous_lists": "publish", "anonymous_names": True}
    return Settings(**{"data_dir": data_dir, **usual, **open_to_strangers, **given})


async def prepare_template(dialect: str, scratch: Path) -> str:
    """An empty, migrated database, made once per process.

    The answer is its URL (or the file to copy).
    """
    if dialect in _prepared:
        return _prepared[dialect]
    if dialect == "sqlite":
        url = f"sqlite:///{scratch / 'template.db'}"
    else:
        server = os.environ.get(f"REFRACT_TEST_{dialect.upper()}_URL")
        if not server:
            pytest.skip(f"absent service: {dialect}")
        name = f"refract_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}"
        admin = Database(Settings(data_dir=scratch, database_url=server))
        async with admin.engine.connect() as connection:
            autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await autocommit.execute(text(f"CREATE DATABASE {name}"))
        await admin.close()
        url = make_url(server).set(database=name).render_as_string(hide_password=False)
    db = Database(Settings(data_dir=scratch, database_url=url))
    await migrations.upgrade(db)
    await db.close()
    _prepared[dialect] = url
    return url


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("databases")
    get_loop().run_until_complete(end_processes())
    end_loop()
    close_databases()


@pytest.fixture(params=DIALECTS)
def database(request: pytest.FixtureRequest, scratch: Path, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty, migrated database, on each of the three in turn."""
    if request.param == "sqlite":
        run_beside_tests(prepare_template("sqlite", scratch))
        shutil.copyfile(scratch / "template.db", tmp_path / "refract.db")
        yield f"sqlite:///{tmp_path / 'refract.db'}"
        return
    url = run_beside_tests(prepare_template(request.param, scratch))
    yield url
    run_beside_tests(empty_database(Settings(data_dir=scratch, database_url=url)))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database)


@pytest.fixture
async def rt(settings: Settings, clock: ManualClock) -> AsyncIterator[Runtime]:
    """A runtime on an empty database, with a clock that only the test moves."""
    settings.data_dir.mkdir(mode=0o700, exist_ok=True)
    async with open_database(settings) as db:
        ids = SnowflakeGenerator(1, clock, wait=clock.advance)
        runtime = Runtime(settings=settings, db=db, clock=clock, ids=ids, secret=Secret(b"s" * 40))
        yield runtime
        await runtime.close()


@pytest.fixture
async def app(rt: Runtime) -> AsyncIterator[WebNode]:
    """The whole program on `rt`, without what runs beside it."""
    application = WebNode(rt)
    yield application
    if application.engine is not None:
        application.engine.spool.close()


@pytest.fixture
async def client(app: WebNode) -> AsyncIterator[AsyncClient]:
    """A stranger; `tests.client` has the headers that make it somebody."""
    async with client_of(app) as asking:
        yield asking


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """An empty Redis of this test's own, to be stopped, filled and slowed at will."""
    if packages.find("redis") is None:
        pytest.skip("absent service: redis")
    base = Path(tempfile.mkdtemp(prefix="refract-redis-"))
    base.chmod(0o711)  # the server is another user
    server = RedisServer(base, free_port())
    server.initialise()
    server.start()
    try:
        yield server
    finally:
        server.discard()
        shutil.rmtree(base)
