"""The tables. A change here needs a migration (`migrations/versions`); a test compares the two.

Times are milliseconds since the epoch. What is only shown is JSON text; what is looked for has a column.
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
    Column("result", Text, comment="JSON: the `run_result`."),
    Column("journal", Text, comment="Path of the recording, which the events come from."),
    Column("journal_bytes", BigInteger),
    UniqueConstraint("instance", "owner", "idempotency_key"),
    Index(None, "instance", "created_at", "run_id"),
    Index("ix_runs_state", "instance", "state", "created_at", "run_id"),
    Index("ix_runs_agent", "instance", "agent", "created_at", "run_id"),
    Index("ix_runs_ended", "instance", "ended_at", "run_id", "journal_bytes"),  # all that retention looks at
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
    UniqueConstraint("name"),
)
