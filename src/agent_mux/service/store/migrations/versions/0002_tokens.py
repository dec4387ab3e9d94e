"""Tokens of those who may use the service."""

import sqlalchemy as sa
from alembic import op

revision = "0002_tokens"
down_revision = "0001_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=12), nullable=False, comment="The part of a token that may be shown."),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column(
            "hash", sa.String(length=64), nullable=False, comment="SHA-256 of the secret, which is 256 random bits."
        ),
        sa.Column("scopes", sa.Text(), nullable=False, comment="With spaces between them."),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column(
            "last_used_at", sa.BigInteger(), nullable=True, comment="About: it is not written with every request."
        ),
        sa.Column(
            "previous_hash", sa.String(length=64), nullable=True, comment="Of the secret before the last rotation."
        ),
        sa.Column("previous_valid_until", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("name", name=op.f("uq_tokens_name")),
    )


def downgrade() -> None:
    op.drop_table("tokens")
