"""The tables. A change here needs a migration in `migrations/versions`; a test compares the two.

Times are milliseconds since the epoch. Data that is only displayed is JSON text; data that is searched has a column.

Webhook secrets are stored in plain text, since they are needed for signing; only its owner can read the database file.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
ULID_LENGTH = 26

INSTANCES = Table(
    "instances",
    METADATA,
    Column("instance", String(ULID_LENGTH), primary_key=True, comment="A server: see `service/instance.py`."),
    Column("fence", BigInteger, nullable=False, comment="Number of servers that have held the row; see `instances`."),
    Column("host", Text, nullable=False, comment="Name of the machine of the last one."),
    Column("seen_at", BigInteger, nullable=False, comment="When it wrote last that it is there."),
    Column("holder", Text, comment="JSON: the server that holds it; see `owner.py`."),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("run_id", String(ULID_LENGTH), primary_key=True),
    Column("instance", String(ULID_LENGTH), nullable=False, comment="The server it belongs to: see `instance.py`."),
    Column("created_at", BigInteger, nullable=False),
    Column("agent", Text, nullable=False),
    Column("model", Text),
    Column("session_id", Text, comment="The agent's own id."),
    Column("state", String(16), nullable=False, comment="A `RunState`."),
    Column("exit_reason", String(16)),
    Column("owner", Text, nullable=False, comment="Who asked for it: the name of a token; empty without tokens."),
    Column("idempotency_key", Text),
    Column("fingerprint", String(64), nullable=False, comment="SHA-256 of the request."),
    Column("request", Text, nullable=False, comment="JSON: the options as asked for, without secrets."),
    Column("is_complete", Boolean, nullable=False, comment="Nothing of the request was left out as a secret."),
    Column("cwd", Text, nullable=False),
    Column("project_id", Text),
    Column("started_at", BigInteger, comment="When its agent was started."),
    Column("ended_at", BigInteger),
    Column("event_count", Integer, comment="Of a run that is over."),
    Column("event_types", Text, comment="JSON: how many events of each type; of a run that is over."),
    Column("turn_count", Integer),
    Column("duration_ms", BigInteger),
    Column("cost_usd", Float),
    Column("error_code", String(32)),
    Column("failed_on", Text, comment="Conditions of `fail_on` that held, with spaces between them."),
    Column("result", Text, comment="JSON: the `run_result`."),
    Column("journal", Text, comment="Path of the recording, which the events come from."),
    Column("journal_bytes", BigInteger),
    Column("work_dir", Text, comment="Where its agent works: `cwd`, or the directory in its worktree."),
    Column("base_commit", String(64), comment="HEAD of the repository at the start."),
    Column("claimed_by", Text, comment="JSON: the server that may start it, or did."),
    UniqueConstraint("instance", "owner", "idempotency_key"),
    Index(None, "instance", "created_at", "run_id"),
    Index("ix_runs_state", "instance", "state", "created_at", "run_id"),
    Index("ix_runs_agent", "instance", "agent", "created_at", "run_id"),
    Index("ix_runs_ended", "instance", "ended_at", "run_id", "journal_bytes"),  # all columns that retention reads
)

RUN_TAGS = Table(
    "run_tags",
    METADATA,
    Column("run_id", String(ULID_LENGTH), ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("tag", Text, primary_key=True),
    Index(None, "tag"),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String(12), primary_key=True, comment="The part of a token that may be shown."),
    Column("name", String(64), nullable=False),
    Column("hash", String(64), nullable=False, comment="SHA-256 of the secret, which is 256 random bits."),
    Column("scopes", Text, nullable=False, comment="With spaces between them."),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger, comment="About: it is not written with every request."),
    Column("previous_hash", String(64), comment="Of the secret before the last rotation."),
    Column("previous_valid_until", BigInteger),
    Column("requests_per_minute", Integer, comment="NULL: as the server has it; 0: no limit."),
    Column("runs_per_minute", Integer, comment="NULL: as the server has it; 0: no limit."),
    UniqueConstraint("name"),
)


DELIVERY_ID_LENGTH = 36

WEBHOOKS = Table(
    "webhooks",
    METADATA,
    Column("webhook_id", String(ULID_LENGTH), primary_key=True),
    Column("instance", String(ULID_LENGTH), nullable=False, comment="The server it belongs to: see `instance.py`."),
    Column("created_at", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("description", Text),
    Column("events", Text, nullable=False, comment="JSON: the types that are wanted."),
    Column("agents", Text, nullable=False, comment="JSON: of which agents; none: of all."),
    Column("tags", Text, nullable=False, comment="JSON: of runs that have all of these."),
    Column("is_enabled", Boolean, nullable=False),
    Column("disabled_reason", Text, comment="Why nothing is sent, if that was not asked for."),
    Column("secret", Text, nullable=False),
    Column("previous_secret", Text, comment="Signs, too, until `previous_until`."),
    Column("previous_until", BigInteger),
    Index(None, "instance", "created_at"),
)

WEBHOOK_DELIVERIES = Table(
    "webhook_deliveries",
    METADATA,
    Column("delivery_id", String(DELIVERY_ID_LENGTH), primary_key=True, comment="The `webhook-id` of the message."),
    Column(
        "webhook_id",
        String(ULID_LENGTH),
        ForeignKey("webhooks.webhook_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("created_at", BigInteger, nullable=False),
    Column("type", String(32), nullable=False),
    Column("run_id", String(ULID_LENGTH), comment="The run of the notification, if there is one."),
    Column("body", Text, nullable=False, comment="JSON: what is sent."),
    Column("state", String(16), nullable=False, comment="pending, delivered or failed."),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False, comment="Of a pending one: when it is tried."),
    Column("last_at", BigInteger, comment="When it was tried last."),
    Column("last_status", Integer, comment="The status of the last answer."),
    Column("last_error", Text, comment="Why the last attempt failed."),
    Index(None, "webhook_id", "state", "next_at"),
    Index(None, "webhook_id", "created_at"),
    Index(None, "state", "created_at"),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("audit_id", String(ULID_LENGTH), primary_key=True),
    Column("instance", String(ULID_LENGTH), nullable=False, comment="The server; empty: the database, as for tokens."),
    Column("created_at", BigInteger, nullable=False),
    Column("action", String(32), nullable=False),
    Column("actor", Text, nullable=False, comment="Name of the token; empty without one."),
    Column("token_id", String(12), nullable=False, comment="Empty without a token."),
    Column("origin", String(16), nullable=False, comment="http, websocket, cli or retention."),
    Column("client", Text, nullable=False, comment="Network address, or user of the machine."),
    Column("request_id", String(64), nullable=False, comment="As in the access log; empty without a request."),
    Column("target_type", String(16), nullable=False, comment="run, webhook, token or profile."),
    Column("target", Text, nullable=False, comment="Id or name."),
    Column("detail", Text, nullable=False, comment="JSON, without secrets."),
    Column("outcome", String(32), comment="ok or an error code; NULL: the service ended meanwhile."),
    Index(None, "created_at", "audit_id"),
    Index(None, "target", "created_at"),
)
