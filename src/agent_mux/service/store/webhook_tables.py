"""The tables of webhooks. A change here needs a migration, as in `tables.py`.

A secret is stored as it is: it is needed to sign. The database is a file that only its owner can read.
"""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from agent_mux.service.store.tables import METADATA, ULID_LENGTH

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
    Column("run_id", String(ULID_LENGTH), comment="The run that it tells of, if it tells of one."),
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
