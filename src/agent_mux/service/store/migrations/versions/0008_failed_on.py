"""The conditions of `fail_on` that held, so that listings and webhooks show them."""

import sqlalchemy as sa
from alembic import op

revision = "0008_failed_on"
down_revision = "0007_instances"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column(
                "failed_on",
                sa.Text(),
                nullable=True,
                comment="Conditions of `fail_on` that held, with spaces between them.",
            )
        )


def downgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_column("failed_on")
