"""The table of the audit log: who requested what, and the result."""

import sqlalchemy as sa
from alembic import op

revision = "0004_audit"
down_revision = "0003_webhooks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("audit_id", sa.String(length=26), nullable=False),
        sa.Column(
            "instance",
            sa.String(length=26),
            nullable=False,
            comment="The server; empty: the database, as for tokens.",
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False, comment="Name of the token; empty without one."),
        sa.Column("token_id", sa.String(length=12), nullable=False, comment="Empty without a token."),
        sa.Column("origin", sa.String(length=16), nullable=False, comment="http, websocket, cli or retention."),
        sa.Column("client", sa.Text(), nullable=False, comment="Network address, or user of the machine."),
        sa.Column(
            "request_id",
            sa.String(length=64),
            nullable=False,
            comment="As in the access log; empty without a request.",
        ),
        sa.Column("target_type", sa.String(length=16), nullable=False, comment="run, webhook, token or profile."),
        sa.Column("target", sa.Text(), nullable=False, comment="Id or name."),
        sa.Column("detail", sa.Text(), nullable=False, comment="JSON, without secrets."),
        sa.Column(
            "outcome",
            sa.String(length=32),
            nullable=True,
            comment="ok or an error code; NULL: the service ended meanwhile.",
        ),
        sa.PrimaryKeyConstraint("audit_id", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_created_at_audit_id"), ["created_at", "audit_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_audit_target_created_at"), ["target", "created_at"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_audit_target_created_at"))
        batch_op.drop_index(batch_op.f("ix_audit_created_at_audit_id"))

    op.drop_table("audit")
