"""The identity of a service: the instance id in its directory, and whether the directory is a copy of another one.

The rows of a database belong to an instance: only the server that has a run's journal can read and recover that run.
A copied directory has the id of its original. Two servers with one id would start the same queued runs, and each would
end the processes of the other's runs. Therefore the directory also contains where its id was made: device and inode of
the directory, and the id of the machine. In any other place the server takes a new id.
"""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from agent_mux._util.files import PRIVATE_FILE, make_directory, read_text, write_text
from agent_mux._util.ulids import is_ulid, new_ulid
from agent_mux.errors import AgentMuxError

ID_FILE = "instance-id"
PLACE_FILE = "instance-place"
LOCK_FILE = "server.lock"
MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_IS_RANDOM_NODE = 1 << 40
"""Set in `uuid.getnode()` when it found no network address and returned a random number."""


class InstancePlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an instance id was made."""

    device: int
    inode: int
    machine: str
    copy_of: str = ""
    """The id of the original, until its rows in a copied database belong to this instance."""

    def is_same(self, other: "InstancePlace") -> bool:
        """Return whether both are the same directory of the same machine."""
        return (self.device, self.inode, self.machine) == (other.device, other.inode, other.machine)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInstance:
    """The instance of a locked directory."""

    instance_id: str
    directory: Path
    place: InstancePlace
    copy_of: str | None = None
    """The instance whose directory was copied; None: this is not a copy, or nothing of the original is left in it."""

    is_new: bool = False
    """Whether the directory had no instance before."""

    def complete_copy(self) -> None:
        """Record that nothing of the original is left to take over."""
        _write_place(self.directory, self.place)


@contextlib.contextmanager
def exclusive_instance(directory: Path) -> Iterator[ServiceInstance]:
    """Lock the directory for this server and yield its instance.

    Raises CONFIG_ERROR when another server holds it.
    """
    try:
        make_directory(directory)
        lock = FileLock(directory / LOCK_FILE, timeout=0, mode=PRIVATE_FILE)
        lock.acquire()
    except Timeout as error:
        other = f"another `amux serve` uses {directory}; stop it, or give this one its own --config-dir"
        raise AgentMuxError("CONFIG_ERROR", other) from error
    except OSError as error:
        message = f"cannot use {directory}: {error.strerror or error}; make it writable, or choose another --config-dir"
        raise AgentMuxError("CONFIG_ERROR", message) from error
    try:
        yield _claim(directory)
    finally:
        lock.release()


def _claim(directory: Path) -> ServiceInstance:
    """Return the instance of a directory, with a new id if the directory is new or a copy."""
    here, made = current_place(directory), _read_place(directory / PLACE_FILE)
    instance = _read_id(directory / ID_FILE)
    copy_of, is_new = made.copy_of if made is not None else "", instance is None
    is_elsewhere = made is not None and not made.is_same(here)
    if instance is None or is_elsewhere or instance == copy_of:  # the last: interrupted between the two files
        copy_of, instance = copy_of or instance or "", new_ulid()
        # The place first: an id of another place must not pass for the id of this one.
        _write_place(directory, msgspec.structs.replace(here, copy_of=copy_of))
        write_text(directory / ID_FILE, instance + "\n")
    elif made is None:
        _write_place(directory, here)
    return ServiceInstance(
        instance_id=instance, directory=directory, place=here, copy_of=copy_of or None, is_new=is_new and not copy_of
    )


def current_place(directory: Path) -> InstancePlace:
    """Return where this directory is now."""
    status = directory.stat()
    return InstancePlace(device=status.st_dev, inode=status.st_ino, machine=machine_id())


def machine_id() -> str:
    """Return an id of this machine that survives restarts; empty if there is none."""
    for path in MACHINE_ID_FILES:
        text = (read_text(path) or "").strip()
        if text:
            return text
    node = uuid.getnode()
    return "" if node & _IS_RANDOM_NODE else f"{node:012x}"


def _read_id(path: Path) -> str | None:
    text = (read_text(path) or "").strip()
    if not text:
        return None
    if not is_ulid(text):
        raise AgentMuxError("CONFIG_ERROR", f"{path} does not contain an instance id; restore or remove it")
    return text


def _read_place(path: Path) -> InstancePlace | None:
    text = read_text(path)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=InstancePlace)
    except msgspec.DecodeError as error:
        message = f"{path} does not contain the place of an instance; remove it if its directory is not a copy"
        raise AgentMuxError("CONFIG_ERROR", message) from error


def _write_place(directory: Path, place: InstancePlace) -> None:
    write_text(directory / PLACE_FILE, msgspec.json.encode(place).decode() + "\n")
