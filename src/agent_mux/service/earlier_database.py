"""Whether the database of a start is the one that the directory of the service was used with.

The directory has the recordings of the runs, and the database their rows. A service that starts with a database that
was removed, emptied or exchanged would list nothing and accept new runs. So the directory records which database it is
used with, and a start with another one is refused unless the settings say that it is meant.
"""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from agent_mux._util.files import read_text, write_text
from agent_mux.errors import AgentMuxError
from agent_mux.service.instance import ServiceInstance
from agent_mux.service.store.database import Database
from agent_mux.service.store.tables import INSTANCES, RUNS

RECORD_FILE = "database"
_STEPS = (
    "name the earlier one ($AGENT_MUX_DATABASE_URL, --database) or restore it from a backup; to begin without the "
    "earlier runs, whose recordings stay, start once with --new-database"
)


class _Record(msgspec.Struct, frozen=True):
    instance: str
    database: str
    """Its URL without the password."""


class EarlierDatabase:
    """What the directory says about the database that it was used with."""

    def __init__(self, instance: ServiceInstance, journals: Path, *, may_be_new: bool) -> None:
        """`journals`: where the recordings are. `may_be_new`: whether any database is right."""
        self._instance = instance
        self._path = instance.directory / RECORD_FILE
        self._record = _read(self._path)
        self._has_runs = not may_be_new and any(journals.glob("*.journal"))

    def require_file(self, database: Database) -> None:
        """Check before it is created that the file of an SQLite database exists. Raises CONFIG_ERROR."""
        is_ours = database.is_inside(self._instance.directory) or self._is_of_instance
        if self._has_runs and not self._instance.is_new and is_ours and database.is_missing:
            raise self._refusal(database)

    async def require_row(self, database: Database) -> None:
        """Check that the database knows this instance. Raises CONFIG_ERROR, and UNAVAILABLE."""
        if not self._has_runs or not self._is_of_instance:
            return
        instance = self._instance.instance_id
        known = sa.union_all(
            sa.select(INSTANCES.c.instance).where(INSTANCES.c.instance == instance),
            sa.select(RUNS.c.instance).where(RUNS.c.instance == instance),
        )
        async with database.reading() as connection:
            if (await connection.execute(known.limit(1))).first() is None:
                raise self._refusal(database)

    def record(self, database: Database) -> None:
        """Record that the directory is used with this database. Raises CONFIG_ERROR."""
        record = _Record(self._instance.instance_id, database.shown)
        if record != self._record:
            write_text(self._path, msgspec.json.encode(record).decode() + "\n")

    @property
    def _is_of_instance(self) -> bool:
        return self._record is not None and self._record.instance == self._instance.instance_id

    def _refusal(self, database: Database) -> AgentMuxError:
        used = "" if self._record is None else f", which was used with {self._record.database}"
        return AgentMuxError(
            "CONFIG_ERROR",
            f"the database {database.shown} has nothing of this service ({self._instance.directory}{used}), whose "
            f"recordings of runs exist: it was removed, emptied or exchanged; {_STEPS}",
        )


def _read(path: Path) -> _Record | None:
    text = read_text(path)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=_Record)
    except msgspec.DecodeError as error:
        message = f"{path} does not say which database was used; remove it if the database is the right one"
        raise AgentMuxError("CONFIG_ERROR", message) from error
