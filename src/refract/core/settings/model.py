"""Every setting there is. `docs/reference/settings.md` is generated from this module."""

import os
from functools import cached_property
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from refract.core.ip_addresses import is_loopback
from refract.core.settings.sources import RefractEnvSource
from refract.core.settings.validation import (
    AnonymousLimitSetting,
    CollectorUrl,
    DatabaseUrl,
    Issuers,
    LimitSetting,
    ModelUrl,
    Networks,
    Origin,
    Ports,
    RedisUrl,
    SecurityContact,
    SigningKey,
    find_production_problem,
)

NodeRole = Literal["all", "web", "redirect", "worker", "ingest"]
Dialect = Literal["sqlite", "postgresql", "mysql"]


class Settings(BaseSettings):
    """Built once, by `cli` or by a test, then handed down. There is no global to import."""

    model_config = SettingsConfigDict(
        env_prefix="REFRACT_", env_nested_delimiter="__", frozen=True, extra="ignore"
    )

    unknown_settings: Literal["refuse", "warn"] = "refuse"
    """What a `REFRACT_…` variable that is no setting does: `refuse` stops the start, `warn` logs it, for upgrades."""

    settings_file: Path | None = None
    """A TOML file with any of these settings, by their names in lower case without `REFRACT_`. The environment wins over it."""

    # -- where it runs
    host: str = "127.0.0.1"
    """The address to listen on. `0.0.0.0` is every address of the machine."""

    port: int = Field(default=8000, ge=0, le=65535)
    """The port to listen on. `0` takes a free one and prints it."""

    workers: int = Field(default=1, ge=1, le=64)
    """How many server processes share the port."""

    role: NodeRole = "all"
    """What it does: `redirect` answers short links, `web` pages and the API, `worker` the background work, `ingest` stores clicks
    beside a `redirect` that may only read, `all` everything."""

    base_url: Origin = None
    """The public address, such as `https://go.example.com`, by which short URLs, loops and `Origin` are judged. Left out: host and port."""

    environment: Literal["development", "production"] = "development"
    """`production` refuses what is only safe on one's own machine: no `base_url`, one that is not `https` (unless it is this machine),
    and `trusted_proxies` that hold everybody."""

    trusted_proxies: Networks = ()
    """Networks of reverse proxies (CIDR, separated by commas) whose `X-Forwarded-For` is believed."""

    stop_grace_seconds: float = Field(default=1.0, ge=0, le=60)
    """How long a stopping process still answers connections that are open, telling each to close."""

    # -- where the data lives
    data_dir: Path = Path("data")
    """The directory for the database file, the click spool and the secret. It is made private to its owner."""

    database_url: DatabaseUrl = None
    """Where the data lives: `sqlite://`, `postgresql://` or `mysql://`. Left out: a file in the data directory."""

    database_pool_size: int = Field(default=10, ge=1, le=200)
    """Connections each process keeps to the database server."""

    redis_url: RedisUrl = None
    """A Redis server for all processes, `redis://` or `rediss://`. Left out: the database carries the news between them."""

    secret_key: SigningKey = None
    """At least 32 characters; signs cursors and form tokens. Left out: made once, kept in the data directory. Machines share one."""

    # -- links
    default_visibility: Literal["public", "unlisted", "signed-in", "secure"] = "unlisted"
    """The visibility of a new link that names none: `public` (listed for everyone signed in), `unlisted` (anyone with the address may
    follow it), `signed-in` (everyone signed in may), `secure` (only owners, people it is shared with and administrators)."""

    codes: Literal["snowflake", "random"] = "snowflake"
    """The codes of new links: made of their id (`snowflake`: short, but near to other codes of the same second), or `random` (60 bits, so
    that unlisted links cannot be found by guessing). Existing links keep theirs. Set it once all processes run this version."""

    dead_link_status: Literal[404, 410] = 410
    """The status of expired, disabled and deleted links: `410`, or `404` for those who want no difference visible."""

    purge_expired_after_days: int = Field(default=0, ge=0)
    """Remove links this many days after they expired or were deleted, leaving a tombstone. `0` never does."""

    blocklist_path: Path | None = None
    """A file of domains that no link may lead to: one a line, or in the format of a hosts file."""

    safe_browsing_key: SecretStr | None = None
    """A key for Google Safe Browsing. Left out: only the block list is asked."""

    safe_browsing_url: str = "https://safebrowsing.googleapis.com"
    """Where the Safe Browsing API answers."""

    # -- limits
    creates_per_hour: LimitSetting = 100
    """Links that one person may create in an hour. Administrators are exempt."""

    captures_per_hour: LimitSetting = 500
    """Items that one person may save in an hour; imports do not count. Administrators are exempt."""

    items_per_person: LimitSetting = 100_000
    """Items that one person's library may hold."""

    storage_per_person: LimitSetting = 5_000_000_000
    """Bytes that the texts and pages of one person's library may take."""

    streams_per_person: LimitSetting = 5
    """Live streams that one person may have open in a process."""

    exports_per_person: LimitSetting = 1
    """Exports that one person may have running in a process."""

    key_requests_per_hour: LimitSetting = 1000
    """Requests that one API key may make in an hour."""

    misses_per_minute: LimitSetting = 120
    """Unknown short links that one client network or user may ask for in a minute.

    Once they are used up, codes get 429 as well until the next minute; names keep working.
    """

    sign_ins_per_minute: LimitSetting = 60
    """Steps of a sign-in (out to the provider, back from it) that one client network may take in a minute."""

    reports_per_hour: LimitSetting = 20
    """Abuse reports that one client network may send in an hour."""

    renders_per_minute: LimitSetting = 120
    """QR codes, share images and feeds that one client network may have made in a minute. Images that are kept ready do not count."""

    stranger_bodies_per_minute: LimitSetting = 600
    """Requests with a body that one client network may send in a minute without signing in."""

    connections_per_network: LimitSetting = 500
    """Connections that one client network (/24 or /48) may have open in one process. This machine and trusted proxies have no limit."""

    open_requests_per_network: LimitSetting = 200
    """Requests of one client network that may be worked on at once in one process. Redirects from the cache do not count; behind a
    trusted proxy its client counts."""

    streams_per_network: LimitSetting = 50
    """Live streams that one client network may have open in one process."""

    # -- people without an account
    anonymous_lists: Literal["off", "draft", "publish"] | None = None
    """What people without an account may do with lists: nothing (`off`), compose them (`draft`; publishing needs an account), or
    `publish` them. Left out: `publish` while both the bind address and the host of the base URL are loopback, `off` otherwise."""

    anonymous_names: bool = False
    """Whether a list of somebody without an account may choose its name. `false` gives it a generated one."""

    anonymous_lists_per_hour: AnonymousLimitSetting = 20
    """Lists that people without an account may start in an hour, per client network. `0` means none."""

    anonymous_entries_per_hour: AnonymousLimitSetting = 200
    """Entries that people without an account may add to lists in an hour, per client network. `0` means none."""

    # -- limits of size
    max_json_bytes: int = Field(default=64 * 1024, ge=1024)
    """The largest body of an ordinary request: JSON or a form."""

    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    """The largest body of bulk changes, imports and uploads, which is read only from people who are signed in."""

    # -- identity
    issuers: Issuers = Field(default_factory=dict)
    """Identity providers, each under a name of its own: `REFRACT_ISSUERS__WORK__URL` and so on, or `[issuers.work]` in the file."""

    signin_links: Literal["auto", "on", "off"] = "auto"
    """One-time sign-in links from the terminal: `auto` allows them while no identity provider is configured."""

    owner_email: str = "owner@localhost"
    """The email address of the owner account that the first start makes."""

    session_days: int = Field(default=30, ge=1, le=90)
    """Days after which an unused browser session ends."""

    session_max_days: int = Field(default=7, ge=1, le=90)
    """Days after which somebody who signed in through an identity provider must do so again, however often they come."""

    audit_days: int = Field(default=90, ge=1)
    """Days for which the audit log is kept."""

    report_days: int = Field(default=90, ge=1)
    """Days for which abuse reports are kept after an administrator has decided."""

    # -- fetching foreign pages
    fetch_allow: Networks = ()
    """Networks (CIDR, separated by commas) that pages may be fetched from, on any port, although they are not public. Mind who may ask."""

    fetch_ports: Ports = (80, 443)
    """Ports (separated by commas) that pages may be fetched from at public addresses."""

    extraction_processes: int = Field(default=2, ge=1, le=16)
    """Processes beside each server process that read foreign pages and files and draw images, started when first needed."""

    # -- the library's assistant
    model_url: ModelUrl = None
    """An OpenAI-compatible endpoint such as `http://127.0.0.1:11434/v1`, which describes items. Left out: only the offline tier does."""

    model_name: str | None = None
    """The model to ask there, such as `llama3.2`."""

    model_key: SecretStr | None = None
    """The key that the endpoint asks for, if it does."""

    model_timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    """How long the model may take over one item; then the offline tier's word stands."""

    model_concurrency: int = Field(default=2, ge=1, le=100)
    """Questions that one process asks the model at a time."""

    quota_free: int = Field(default=50, ge=0)
    """Items a day (by UTC) that the model describes for somebody on the free plan."""

    quota_pro: int = Field(default=500, ge=0)
    """Items a day (by UTC) that the model describes for somebody on the pro plan."""

    # -- the redirect engine
    cached_links: int = Field(default=100_000, ge=16)
    """Links each process keeps ready in memory."""

    cached_misses: int = Field(default=20_000, ge=16)
    """Unknown paths each process remembers, apart from the links."""

    spool_dir: Path | None = None
    """Where clicks are written before the redirect leaves. Left out: `spool` in the data directory."""

    spool_reader: Literal["here", "elsewhere"] = "here"
    """Who stores the clicks of a `redirect` node without Redis: a process that may write `here`, on the same spool directory (without
    one it does not start), or whatever collects the directory `elsewhere`."""

    spool_segment_bytes: int = Field(default=8 * 1024 * 1024, ge=4096)
    """The size at which a spool segment is closed and the next one begins."""

    spool_sync: Literal["never", "always"] = "never"
    """`never` survives the death of the process; `always` also waits for the disk, which survives the loss of power and costs speed."""

    # -- old clicks
    archive_dir: Path | None = None
    """Where events of old days lie as column files; web and worker share it. Left out: `archive` in the data directory."""

    event_days: int = Field(default=7, ge=1)
    """Whole days for which single click events stay in the database, before they become a column file each."""

    archive_days: int = Field(default=1826, ge=1)
    """Days after which the column file of a day is dropped."""

    # -- background work
    job_lease_seconds: float = Field(default=60.0, ge=1)
    """How long a job belongs to a worker that does not renew it."""

    job_poll_seconds: float = Field(default=30.0, gt=0)
    """How often a worker looks for jobs when nobody wakes it."""

    job_concurrency: int = Field(default=4, ge=1, le=100)
    """Jobs that one process works on at a time."""

    # -- reporting
    security_contact: SecurityContact = None
    """Who is told of a security problem: `mailto:security@example.com` or an https address, published at `/.well-known/security.txt`.
    Left out: nothing is published there."""

    security_policy: SecurityContact = None
    """The https address of your policy for such reports, named in the same file."""

    # -- observation
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe message that is logged."""

    log_format: Literal["auto", "json", "text"] = "auto"
    """`json` for machines, `text` for people, `auto` picks text on a terminal."""

    otlp_url: CollectorUrl = None
    """Where OpenTelemetry traces are sent (OTLP over HTTP), such as `http://127.0.0.1:4318`; needs the extra `otel`. Left out:
    where `OTEL_EXPORTER_OTLP_ENDPOINT` says, if the extra is installed; else none are made."""

    geoip_path: Path | None = None
    """A `.mmdb` file that says where networks are, by country or by city, in MaxMind's layout or DB-IP's. A replaced file is noticed
    within seconds. Left out: the country alone, by the assignments of the internet registries."""

    stats_quarter_days: int = Field(default=30, ge=2, le=3650)
    """Days for which figures are kept by the quarter hour; older ones are by the UTC day."""

    stats_day_days: int = Field(default=365, ge=31, le=36500)
    """Days for which figures are kept by the UTC day, rounded up to whole months; older ones are by the month."""

    stats_month_days: int = Field(default=1826, ge=31, le=36500)
    """Days for which figures are kept by the month; older ones are dropped, the totals of links stay."""

    metrics_token: SecretStr | None = None
    """The token that `/metrics` and the detail of `/ready` ask for, as `Authorization: Bearer`. Left out: only direct requests from
    this machine see them, and none while trusted proxies are set."""

    @model_validator(mode="after")
    def _check_model_name(self) -> Self:
        if self.model_url is not None and not self.model_name:
            problem = "REFRACT_MODEL_URL needs REFRACT_MODEL_NAME, the model to ask there"
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_production(self) -> Self:
        if self.environment == "production" and (problem := find_production_problem(self)):
            raise ValueError(problem)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What a command was told, then the environment, then the file."""
        file = os.environ.get("REFRACT_SETTINGS_FILE")
        return (
            init_settings,
            RefractEnvSource(settings_cls),
            *([TomlConfigSettingsSource(settings_cls, Path(file))] if file else []),
        )

    @property
    def signin_links_allowed(self) -> bool:
        """Whether one-time links let anybody in. Who has an identity provider wants no second way in, unless they say so."""
        return self.signin_links == "on" or (self.signin_links == "auto" and not self.issuers)

    @property
    def effective_anonymous_lists(self) -> Literal["off", "draft", "publish"]:
        """What people without an account may do with lists. A limit of 0 closes the door as `off` does."""
        if self.anonymous_lists_per_hour == 0 or self.anonymous_entries_per_hour == 0:
            return "off"
        if self.anonymous_lists is not None:
            return self.anonymous_lists
        own_machine = is_loopback(self.host) and is_loopback(
            urlsplit(self.public_url).hostname or ""
        )
        return "publish" if own_machine else "off"

    @cached_property
    def public_url(self) -> str:
        """The public address without a trailing slash."""
        if self.base_url:
            return self.base_url
        host = "127.0.0.1" if self.listens_everywhere else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def https(self) -> bool:
        return self.public_url.startswith("https:")

    @property
    def effective_database_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir.absolute() / 'refract.db'}"

    @property
    def dialect(self) -> Dialect:
        scheme = urlsplit(self.effective_database_url).scheme
        return (
            "postgresql" if scheme == "postgresql" else "mysql" if scheme == "mysql" else "sqlite"
        )

    @property
    def effective_spool_dir(self) -> Path:
        return self.spool_dir or self.data_dir / "spool"

    @property
    def effective_archive_dir(self) -> Path:
        return self.archive_dir or self.data_dir / "archive"

    @property
    def backup_marker(self) -> Path:
        """A file whose time is that of the last good backup, beside the archived clicks: web and worker nodes share that directory."""
        return self.effective_archive_dir / "last-backup"

    @property
    def listens_everywhere(self) -> bool:
        """Whether it is bound to every address of the machine."""
        return self.host in ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound
