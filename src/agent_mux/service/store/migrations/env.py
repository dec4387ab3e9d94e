"""Called by Alembic: runs the migrations on the connection that `migrating.py` hands over."""

from alembic import context

from agent_mux.service.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite cannot change a table; Alembic makes another and copies
)
with context.begin_transaction():
    context.run_migrations()
