"""Servers that use the database, and which of them holds an instance."""

import sqlalchemy as sa
from alembic import op

revision = "0007_instances"
down_revision = "0006_workspaces"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "instances",
        sa.Column("instance", sa.String(length=26), nullable=False, comment="A server: see `service/instance.py`."),
        sa.Column(
            "fence",
            sa.BigInteger(),
            nullable=False,
            comment="Number of servers that have held the row; see `instances`.",
        ),
        sa.Column("host", sa.Text(), nullable=False, comment="Name of the machine of the last one."),
        sa.Column("seen_at", sa.BigInteger(), nullable=False, comment="When it wrote last that it is there."),
        sa.PrimaryKeyConstraint("instance", name=op.f("pk_instances")),
    )


def downgrade() -> None:
    op.drop_table("instances")
