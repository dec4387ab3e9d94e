"""A program that gives up rights and then becomes a command: it may write only in some directories, without network.

Landlock restricts the file system, a network namespace of its own the network. Both need no privileges and hold for all
processes of the command. Run as `python -I -S sandbox_exec.py SPEC PROGRAM ARGUMENTS...` with a SPEC in JSON:
`writable`, a list of paths, and `network`, whether the network stays. Without a program, it only checks that this
works. It imports the standard library only, and exits with 126 and a sentence if the kernel lacks something.
"""

import ctypes
import fcntl
import json
import os
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

FAILED = 126
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls of Landlock; the numbers are the same on all architectures."""
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Writing to files, and creating and removing entries of each type."""
_SCOPES = 1 | 2
"""No abstract sockets and no signals of processes outside."""
_REFER_VERSION, _TRUNCATE_VERSION, _NET_VERSION, _SCOPE_VERSION = 2, 3, 4, 6
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_DEVICES = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom", "/dev/ptmx", "/dev/pts",
    "/dev/shm",  # noqa: S108  # semaphores of Python's multiprocessing are files there
)  # fmt: skip
_library = ctypes.CDLL(None, use_errno=True)


def restrict_network() -> None:
    """Move this process to a network namespace in which only the loopback interface exists."""
    user, group = os.getuid(), os.getgid()
    _check(_library.unshare(_NEW_USER | _NEW_NETWORK), "a network namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(control, _GET_FLAGS, request), 16)
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


def restrict_files(writable: list[str]) -> None:
    """Let this process and its children change files below `writable` and some devices only."""
    version = _library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    _check(version, "Landlock")
    changes = _CHANGES
    changes |= _REFER if version >= _REFER_VERSION else 0
    changes |= _TRUNCATE if version >= _TRUNCATE_VERSION else 0
    fields = [changes]
    fields += [0] if version >= _NET_VERSION else []
    fields += [_SCOPES] if version >= _SCOPE_VERSION else []
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = _library.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    _check(ruleset, "a ruleset of Landlock")
    for path in (*writable, *_DEVICES):
        _allow(ruleset, path, changes)
    _check(_library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _check(_library.syscall(_RESTRICT_SELF, ruleset, 0), "a restriction by Landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, changes: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            changes &= _WRITE_FILE | _TRUNCATE
        rule = struct.pack("=Qi", changes, descriptor)
        _check(_library.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), f"a rule for {path}")
    finally:
        os.close(descriptor)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main(spec: dict[str, Any], argv: list[str]) -> NoReturn:
    """Give up the rights and become the command."""
    try:
        if not spec["network"]:
            restrict_network()
        restrict_files(spec["writable"])
    except OSError as error:
        sys.stderr.write(f"the sandbox cannot be set up: {error.strerror}\n")
        sys.exit(FAILED)
    if not argv:
        sys.exit(0)
    try:
        os.execv(argv[0], argv)  # noqa: S606  # this program becomes the command
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
