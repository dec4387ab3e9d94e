"""Webhooks and what is delivered to them."""

import sqlalchemy as sa
from alembic import op

revision = "0003_webhooks"
down_revision = "0002_tokens"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.String(length=26), nullable=False),
        sa.Column(
            "instance", sa.String(length=26), nullable=False, comment="The server it belongs to: see `instance.py`."
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("events", sa.Text(), nullable=False, comment="JSON: the types that are wanted."),
        sa.Column("agents", sa.Text(), nullable=False, comment="JSON: of which agents; none: of all."),
        sa.Column("tags", sa.Text(), nullable=False, comment="JSON: of runs that have all of these."),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column(
            "disabled_reason", sa.Text(), nullable=True, comment="Why nothing is sent, if that was not asked for."
        ),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("previous_secret", sa.Text(), nullable=True, comment="Signs, too, until `previous_until`."),
        sa.Column("previous_until", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhooks")),
    )
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhooks_instance_created_at"), ["instance", "created_at"], unique=False)

    op.create_table(
        "webhook_deliveries",
        sa.Column("delivery_id", sa.String(length=36), nullable=False, comment="The `webhook-id` of the message."),
        sa.Column("webhook_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column(
            "run_id", sa.String(length=26), nullable=True, comment="The run of the notification, if there is one."
        ),
        sa.Column("body", sa.Text(), nullable=False, comment="JSON: what is sent."),
        sa.Column("state", sa.String(length=16), nullable=False, comment="pending, delivered or failed."),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False, comment="Of a pending one: when it is tried."),
        sa.Column("last_at", sa.BigInteger(), nullable=True, comment="When it was tried last."),
        sa.Column("last_status", sa.Integer(), nullable=True, comment="The status of the last answer."),
        sa.Column("last_error", sa.Text(), nullable=True, comment="Why the last attempt failed."),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.webhook_id"], name=op.f("fk_webhook_deliveries_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("pk_webhook_deliveries")),
    )
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_webhook_deliveries_state_created_at"), ["state", "created_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_webhook_deliveries_webhook_id_created_at"), ["webhook_id", "created_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_webhook_deliveries_webhook_id_state_next_at"),
            ["webhook_id", "state", "next_at"],
            unique=False,
        )


def downgrade() -> None:
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_webhook_deliveries_webhook_id_state_next_at"))
        batch_op.drop_index(batch_op.f("ix_webhook_deliveries_webhook_id_created_at"))
        batch_op.drop_index(batch_op.f("ix_webhook_deliveries_state_created_at"))

    op.drop_table("webhook_deliveries")
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_webhooks_instance_created_at"))

    op.drop_table("webhooks")
