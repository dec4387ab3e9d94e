"""Add the rate limit of requests to tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0005_rate_limits"
down_revision = "0004_audit"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        for name in ("requests_per_minute", "runs_per_minute"):
            batch_op.add_column(
                sa.Column(name, sa.Integer(), nullable=True, comment="NULL: as the server has it; 0: no limit.")
            )


def downgrade() -> None:
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.drop_column("runs_per_minute")
        batch_op.drop_column("requests_per_minute")
