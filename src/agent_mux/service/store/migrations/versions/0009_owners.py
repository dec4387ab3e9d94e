"""Who holds an instance and who has claimed a run, so that no second server starts or ends it."""

import sqlalchemy as sa
from alembic import op

revision = "0009_owners"
down_revision = "0008_failed_on"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("instances", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("holder", sa.Text(), nullable=True, comment="JSON: the server that holds it; see `owner.py`.")
        )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("claimed_by", sa.Text(), nullable=True, comment="JSON: the server that may start it, or did.")
        )


def downgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_column("claimed_by")
    with op.batch_alter_table("instances", schema=None) as batch_op:
        batch_op.drop_column("holder")
