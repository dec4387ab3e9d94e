"""Brings the schema of a database up to date, with Alembic; its scripts are in `migrations`, inside of the package."""

from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from agent_mux.errors import AgentMuxError
from agent_mux.service.store.engines import new_migration_engine

SCRIPTS = Path(__file__).parent / "migrations"
ONE_AT_A_TIME = 7_232_941_120_001  # of PostgreSQL's advisory locks: any number that nobody else uses


def upgrade(url: sqlalchemy.URL) -> None:
    """Make the tables, or change them to what this version needs; nothing where they are as they should be.

    All or nothing, and several servers may begin at once. Blocking. Raises CONFIG_ERROR for a database of a newer
    version, and what the driver raises.
    """
    engine = new_migration_engine(url)
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sqlalchemy.text(f"SELECT pg_advisory_xact_lock({ONE_AT_A_TIME})"))
            _upgrade(connection)
    finally:
        engine.dispose()


def _upgrade(connection: sqlalchemy.Connection) -> None:
    config = configuration()
    config.attributes["connection"] = connection
    present = MigrationContext.configure(connection).get_current_revision()
    scripts = ScriptDirectory.from_config(config)
    if present is not None and present not in {script.revision for script in scripts.walk_revisions()}:
        newer = f"the database is of a newer agent-mux (revision {present}); use that, or another database"
        raise AgentMuxError("CONFIG_ERROR", newer)
    command.upgrade(config, "head")


def configuration() -> Config:
    """For Alembic."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config
