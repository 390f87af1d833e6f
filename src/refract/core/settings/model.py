"""All settings. `docs/reference/settings.md` is generated from this module."""

import os
import sys
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
    ClientDialects,
    CollectorUrl,
    DatabaseUrl,
    DeadLinkStatus,
    Issuers,
    LimitSetting,
    MailAddress,
    ModelUrl,
    Networks,
    Origin,
    Ports,
    RedisUrl,
    SecurityContact,
    SigningKey,
    SmtpUrl,
    find_production_problem,
)

NodeRole = Literal["all", "web", "redirect", "worker", "ingest"]
Dialect = Literal["sqlite", "postgresql", "mysql"]


class Settings(BaseSettings):
    """All settings, built once by `cli` or by a test, then passed down. There is no global."""

    model_config = SettingsConfigDict(
        env_prefix="REFRACT_", env_nested_delimiter="__", frozen=True, extra="ignore"
    )

    unknown_settings: Literal["refuse", "warn"] = "refuse"
    """How to treat an unknown `REFRACT_…` variable.

    `refuse` stops the start, `warn` logs it, for upgrades.
    """

    settings_file: Path | None = None
    """A TOML file with any of these settings, in lower case without `REFRACT_`.

    The environment takes precedence.
    """

    # Server
    host: str = "127.0.0.1"
    """The address to listen on. `0.0.0.0` means every address of the machine."""

    port: int = Field(default=8000, ge=0, le=65535)
    """The port to listen on. `0` takes a free one and prints it."""

    workers: int = Field(default=1, ge=1, le=64)
    """Number of server processes that share the port."""

    role: NodeRole = "all"
    """The role of this node.

    `redirect` answers short links, `web` serves pages and the API, `worker` runs background jobs,
    `ingest` stores clicks beside a `redirect` node with read-only access, `all` does everything.
    """

    background: Literal["process", "inline"] = "process"
    """Where role `all` stores clicks and runs jobs, and renders pages.

    `process`: in the serving processes, and one more that only redirects never waits for them.
    `inline`: in the processes that redirect as well, which needs less memory.
    """

    base_url: Origin = None
    """The public URL, such as `https://go.example.com`.

    Short URLs begin with it, and loops and `Origin` headers are checked against it. Default: host
    and port.
    """

    environment: Literal["development", "production"] = "development"
    """`production` refuses settings that are only safe on your own machine.

    These are: no `base_url`, one that is not `https` (unless it is this machine), and
    `trusted_proxies` that include every address.
    """

    trusted_proxies: Networks = ()
    """Networks of reverse proxies (CIDR, comma-separated) whose `X-Forwarded-For` is trusted."""

    stop_grace_seconds: float = Field(default=1.0, ge=0, le=60)
    """Seconds for which a stopping process still answers open connections, asking each to close."""

    # Data
    data_dir: Path = Path("data")
    """The directory of the database file, the click spool and the secret.

    It is made private to its owner.
    """

    database_url: DatabaseUrl = None
    """The database: `sqlite://`, `postgresql://` or `mysql://`.

    Default: a SQLite file in the data directory.
    """

    database_pool_size: int = Field(default=10, ge=1, le=200)
    """Connections of each process to the database server."""

    redis_url: RedisUrl = None
    """A Redis server for all processes, `redis://` or `rediss://`.

    Default: none; processes notify each other through the database.
    """

    secret_key: SigningKey = None
    """The key that signs cursors and form tokens, at least 32 characters.

    Default: generated once and stored in the data directory. All machines must have the same one.
    """

    # Links
    default_visibility: Literal["public", "unlisted", "signed-in", "secure"] = "unlisted"
    """The visibility of a new link without one.

    `public` (listed for everyone signed in), `unlisted` (anyone with the link may follow it),
    `signed-in` (everyone signed in may), `secure` (only owners, people it is shared with and
    administrators).
    """

    codes: Literal["snowflake", "random"] = "snowflake"
    """How codes of new links are made.

    `snowflake` makes them of their id: short, but close to other codes of the same second. `random`
    has 60 bits, so that unlisted links cannot be found by guessing. Existing links keep theirs.
    Change it once all processes run this version.
    """

    dead_link_status: DeadLinkStatus = 410
    """The status of expired, disabled and deleted links.

    `410`, or `404` as for unknown links.
    """

    purge_expired_after_days: int = Field(default=0, ge=0)
    """Days after which expired or deleted links are removed, leaving a tombstone.

    `0` means never.
    """

    blocklist_path: Path | None = None
    """A file of domains that no link may point to: one a line, or in the format of a hosts file."""

    safe_browsing_key: SecretStr | None = None
    """A key for Google Safe Browsing. Default: only the block list is checked."""

    safe_browsing_url: str = "https://safebrowsing.googleapis.com"
    """The URL of the Safe Browsing API."""

    # Rate limits
    creates_per_hour: LimitSetting = 100
    """Links that a user may create in an hour. Administrators are exempt."""

    captures_per_hour: LimitSetting = 500
    """Items that a user may save in an hour; imports do not count. Administrators are exempt."""

    items_per_person: LimitSetting = 100_000
    """Items that a user's library may contain."""

    storage_per_person: LimitSetting = 5_000_000_000
    """Bytes that the texts and pages of a user's library may take."""

    streams_per_person: LimitSetting = 5
    """Live streams that a user may have open in a process."""

    exports_per_person: LimitSetting = 1
    """Exports that a user may have running in a process."""

    key_requests_per_hour: LimitSetting = 1000
    """Requests that an API key may make in an hour."""

    misses_per_minute: LimitSetting = 120
    """Unknown short links that a client network or user may request in a minute.

    Once they are used up, codes get 429 as well until the next minute; names keep working.
    """

    sign_ins_per_minute: LimitSetting = 60
    """Steps of a sign-in that a client network may take in a minute.

    A sign-in has two: to the provider, and back from it.
    """

    reports_per_hour: LimitSetting = 20
    """Abuse reports that a client network may send in an hour."""

    renders_per_minute: LimitSetting = 120
    """QR codes, share images and feeds that a client network may have rendered in a minute.

    Cached images do not count.
    """

    stranger_bodies_per_minute: LimitSetting = 600
    """Requests with a body that a client network may send in a minute without signing in."""

    connections_per_network: LimitSetting = 500
    """Connections that a client network (/24 or /48) may have open in a process.

    This machine and trusted proxies have no limit.
    """

    open_requests_per_network: LimitSetting = 200
    """Requests of a client network that may be open in a process at the same time.

    Redirects from the cache do not count; behind a trusted proxy its client counts.
    """

    streams_per_network: LimitSetting = 50
    """Live streams that a client network may have open in a process."""

    # Clients of other systems
    compat: ClientDialects = ("shlink", "linkding", "kutt")
    """The systems whose clients may talk to this installation, comma-separated.

    `shlink`, `linkding`, `yourls` and `kutt`, each at the paths of the original, and `karakeep`,
    whose clients use the base URL with `/karakeep`. Blank: none. Keys of YOURLS clients are sent in
    addresses, so that one is off by default.
    """

    # People without an account
    anonymous_lists: Literal["off", "draft", "publish"] | None = None
    """What people without an account may do with lists.

    Nothing (`off`), create drafts (`draft`; publishing needs an account), or `publish` them.
    Default: `publish` while both the bind address and the host of the base URL are loopback, `off`
    otherwise.
    """

    anonymous_names: bool = False
    """Whether people without an account may choose the name of a list.

    `false` generates one.
    """

    list_embeds: bool = True
    """Whether other sites may show a published list in a frame (`/NAME?embed`).

    The framed page has no scripts, forms or cookies.
    """

    anonymous_lists_per_hour: AnonymousLimitSetting = 20
    """Lists that people without an account may start in an hour, per client network.

    `0` means none.
    """

    anonymous_entries_per_hour: AnonymousLimitSetting = 200
    """Entries that people without an account may add in an hour, per client network.

    `0` means none.
    """

    # Size limits
    max_json_bytes: int = Field(default=64 * 1024, ge=1024)
    """The largest body of an ordinary request: JSON or a form."""

    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    """The largest body of bulk changes, imports and uploads, which need a signed-in user."""

    # Identity
    issuers: Issuers = Field(default_factory=dict)
    """Identity providers, each with a name.

    `REFRACT_ISSUERS__WORK__URL` and so on, or `[issuers.work]` in the settings file.
    """

    signin_links: Literal["auto", "on", "off"] = "auto"
    """One-time sign-in links from the terminal.

    `auto` allows them while no identity provider is configured.
    """

    team_creation: Literal["administrators", "everyone"] = "administrators"
    """Who may create teams: `administrators`, or `everyone` who is signed in."""

    owner_email: str = "owner@localhost"
    """The email address of the owner account that the first start creates."""

    session_days: int = Field(default=30, ge=1, le=90)
    """Days after which an unused browser session ends."""

    session_max_days: int = Field(default=7, ge=1, le=90)
    """Days after which a user of an identity provider must sign in again, even if active."""

    audit_days: int = Field(default=90, ge=1)
    """Days for which the audit log is kept."""

    report_days: int = Field(default=90, ge=1)
    """Days for which abuse reports are kept after an administrator has decided."""

    # Email
    smtp_url: SmtpUrl = None
    """The mail server that sends invitations: `smtp://user:password@mail.example.com:587`.

    `smtps://` is encrypted from the start (port 465), `smtp://` if the server offers STARTTLS (port
    587). Default: none; links of invitations are shown, to be passed on by hand.
    """

    mail_from: MailAddress = None
    """The sender of emails, such as `Refract <go@example.com>`. `smtp_url` needs it."""

    # Fetching of foreign pages
    fetch_allow: Networks = ()
    """Non-public networks (CIDR, comma-separated) from which pages may be fetched, on any port.

    Consider who may save links: they can make Refract fetch from these networks.
    """

    fetch_ports: Ports = (80, 443)
    """Ports (comma-separated) from which pages may be fetched at public addresses."""

    extraction_processes: int = Field(default=2, ge=1, le=16)
    """Extraction processes of each server process, started when first needed.

    They read foreign pages and files and draw images.
    """

    # AI suggestions
    model_url: ModelUrl = None
    """An OpenAI-compatible endpoint that describes items, such as `http://127.0.0.1:11434/v1`.

    Default: items are described offline only.
    """

    model_name: str | None = None
    """The model at that endpoint, such as `llama3.2`."""

    model_key: SecretStr | None = None
    """The API key of the endpoint, if it needs one."""

    model_timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    """Seconds that the model may take for one item; then the offline description is used."""

    model_concurrency: int = Field(default=2, ge=1, le=100)
    """Concurrent requests of a process to the model."""

    quota_free: int = Field(default=50, ge=0)
    """Items that the model describes per user and day (UTC) on the free plan."""

    quota_pro: int = Field(default=500, ge=0)
    """Items that the model describes per user and day (UTC) on the pro plan."""

    # Redirects
    cached_links: int = Field(default=100_000, ge=16)
    """Links that each process caches in memory."""

    cached_misses: int = Field(default=20_000, ge=16)
    """Unknown paths that each process caches, separately from the links."""

    spool_dir: Path | None = None
    """The directory where clicks are written before the redirect is sent.

    Default: `spool` in the data directory.
    """

    spool_reader: Literal["here", "elsewhere"] = "here"
    """Who stores the clicks of a `redirect` node without Redis.

    `here`: another process with write access, on the same spool directory; without one the node
    does not start. `elsewhere`: something that collects the directory.
    """

    spool_segment_bytes: int = Field(default=8 * 1024 * 1024, ge=4096)
    """The size in bytes at which a spool segment is closed and the next one begins."""

    spool_sync: Literal["never", "always"] = "never"
    """Whether to wait for the disk on every click.

    `never` survives the death of the process; `always` also survives a loss of power, and costs
    speed.
    """

    # Archive
    archive_dir: Path | None = None
    """The directory of archived click events (Parquet files), shared by web and worker nodes.

    Default: `archive` in the data directory.
    """

    event_days: int = Field(default=7, ge=1)
    """Days for which single click events stay in the database.

    Then each day becomes a Parquet file.
    """

    archive_days: int = Field(default=1826, ge=1)
    """Days after which the Parquet file of a day is deleted."""

    # Background jobs
    job_lease_seconds: float = Field(default=60.0, ge=1)
    """Seconds after which a job is taken from a worker that does not renew its lease."""

    job_poll_seconds: float = Field(default=30.0, gt=0)
    """Seconds between two checks for jobs when a worker is not woken."""

    job_concurrency: int = Field(default=4, ge=1, le=100)
    """Jobs that a process runs at the same time."""

    # Security contact
    security_contact: SecurityContact = None
    """The contact for security problems: `mailto:security@example.com` or an https URL.

    Published at `/.well-known/security.txt`. Default: nothing is published there.
    """

    security_policy: SecurityContact = None
    """The https URL of your security policy, published in the same file."""

    # Observability
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""

    log_format: Literal["auto", "json", "text"] = "auto"
    """`json` for machines, `text` for people; `auto` is text on a terminal."""

    otlp_url: CollectorUrl = None
    """The OpenTelemetry collector (OTLP over HTTP), such as `http://127.0.0.1:4318`.

    Needs the extra `otel`. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, if the extra is installed;
    otherwise there are no traces.
    """

    geoip_path: Path | None = None
    """A `.mmdb` file that maps networks to countries or cities, in MaxMind's or DB-IP's layout.

    A replaced file is noticed within seconds. Default: countries only, by the assignments of the
    internet registries.
    """

    stats_quarter_days: int = Field(default=30, ge=2, le=3650)
    """Days for which statistics are kept by the quarter hour; older ones are by UTC day."""

    stats_day_days: int = Field(default=365, ge=31, le=36500)
    """Days for which statistics are kept by UTC day, rounded up to whole months.

    Older ones are by month.
    """

    stats_month_days: int = Field(default=1826, ge=31, le=36500)
    """Days for which statistics are kept by month; older ones are dropped, link totals stay."""

    metrics_token: SecretStr | None = None
    """The token for `/metrics` and the detail of `/ready`, as `Authorization: Bearer`.

    Default: only direct requests from this machine see them, and none while trusted proxies are
    set.
    """

    @model_validator(mode="after")
    def _check_model_name(self) -> Self:
        if self.model_url is not None and not self.model_name:
            problem = "REFRACT_MODEL_URL needs REFRACT_MODEL_NAME, the model to ask there"
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_mail_from(self) -> Self:
        if self.smtp_url is not None and not self.mail_from:
            problem = "REFRACT_SMTP_URL needs REFRACT_MAIL_FROM, the sender of its emails"
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
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order: command line, environment, settings file."""
        file = os.environ.get("REFRACT_SETTINGS_FILE")
        return (
            init_settings,
            RefractEnvSource(settings_cls),
            *([TomlConfigSettingsSource(settings_cls, Path(file))] if file else []),
        )

    @property
    def signin_links_allowed(self) -> bool:
        """Return whether one-time sign-in links work.

        With an identity provider they are off, unless set explicitly.
        """
        return self.signin_links == "on" or (self.signin_links == "auto" and not self.issuers)

    @property
    def effective_anonymous_lists(self) -> Literal["off", "draft", "publish"]:
        """Return what people without an account may do with lists. A limit of 0 means `off`."""
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
        """Return the public URL without a trailing slash."""
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
        """Return the file whose time is that of the last good backup.

        It is beside the archived clicks: web and worker nodes share that directory.
        """
        return self.effective_archive_dir / "last-backup"

    @property
    def has_redirect_process(self) -> bool:
        """Return whether redirects have a process of their own. Only Linux passes connections."""
        return self.role == "all" and self.background == "process" and sys.platform == "linux"

    @property
    def process_count(self) -> int:
        """Return the number of processes that use the database."""
        return self.workers + self.has_redirect_process

    @property
    def listens_everywhere(self) -> bool:
        """Return whether the server is bound to every address of the machine."""
        return self.host in ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound
