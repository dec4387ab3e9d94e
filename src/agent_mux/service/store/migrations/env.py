"""Run by Alembic: migrates on the connection that `store.database` passes."""

from alembic import context

from agent_mux.service.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite cannot alter a table; Alembic creates a new one and copies
)
with context.begin_transaction():
    context.run_migrations()
