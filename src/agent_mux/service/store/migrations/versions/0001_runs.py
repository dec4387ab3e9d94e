"""The first tables: runs and their tags."""

import sqlalchemy as sa
from alembic import op

revision = "0001_runs"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column(
            "instance", sa.String(length=26), nullable=False, comment="The server it belongs to: see `instance.py`."
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True, comment="The agent's own id."),
        sa.Column("state", sa.String(length=16), nullable=False, comment="A `RunState`."),
        sa.Column("exit_reason", sa.String(length=16), nullable=True),
        sa.Column(
            "owner", sa.Text(), nullable=False, comment="Who asked for it: the name of a token; empty without tokens."
        ),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.String(length=64), nullable=False, comment="SHA-256 of the request."),
        sa.Column("request", sa.Text(), nullable=False, comment="JSON: the options as asked for, without secrets."),
        sa.Column(
            "is_complete", sa.Boolean(), nullable=False, comment="Nothing of the request was left out as a secret."
        ),
        sa.Column("cwd", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True, comment="When its agent was started."),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("event_count", sa.Integer(), nullable=True, comment="Of a run that is over."),
        sa.Column(
            "event_types",
            sa.Text(),
            nullable=True,
            comment="JSON: how many events of each type; of a run that is over.",
        ),
        sa.Column("turn_count", sa.Integer(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("error_code", sa.String(length=32), nullable=True),
        sa.Column("result", sa.Text(), nullable=True, comment="JSON: the `run_result`."),
        sa.Column("journal", sa.Text(), nullable=True, comment="Path of the recording, which the events come from."),
        sa.Column("journal_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
        sa.UniqueConstraint(
            "instance", "owner", "idempotency_key", name=op.f("uq_runs_instance_owner_idempotency_key")
        ),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index("ix_runs_agent", ["instance", "agent", "created_at", "run_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_runs_instance_created_at_run_id"), ["instance", "created_at", "run_id"], unique=False
        )
        batch_op.create_index("ix_runs_state", ["instance", "state", "created_at", "run_id"], unique=False)
        batch_op.create_index("ix_runs_ended", ["instance", "ended_at", "run_id", "journal_bytes"], unique=False)

    op.create_table(
        "run_tags",
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_run_tags_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "tag", name=op.f("pk_run_tags")),
    )
    with op.batch_alter_table("run_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_tags_tag"), ["tag"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("run_tags", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_run_tags_tag"))

    op.drop_table("run_tags")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index("ix_runs_ended")
        batch_op.drop_index("ix_runs_state")
        batch_op.drop_index(batch_op.f("ix_runs_instance_created_at_run_id"))
        batch_op.drop_index("ix_runs_agent")

    op.drop_table("runs")
