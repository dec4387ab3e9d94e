"""Where a run works, and the commit that it started from."""

import sqlalchemy as sa
from alembic import op

revision = "0006_workspaces"
down_revision = "0005_rate_limits"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column(
                "work_dir",
                sa.Text(),
                nullable=True,
                comment="Where its agent works: `cwd`, or the directory in its worktree.",
            )
        )
        batch_op.add_column(
            sa.Column(
                "base_commit", sa.String(length=64), nullable=True, comment="HEAD of the repository at the start."
            )
        )


def downgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_column("base_commit")
        batch_op.drop_column("work_dir")
