"""Start a program that cannot see some directories and files (Linux).

`hide_places.py [--hidden=PATH]... [--kept=PATH]... --cwd=PATH -- PROGRAM ARGUMENT...`

The program replaces this process, so that it keeps its process id, group, session, terminal and parent. What is mounted
exists only in the mount namespace of the program and of its children, and ends with the last of them, however they end.
This file is run by its path and imports nothing of ours. It runs before each trial, and half of its time would be
imports of `json` and `pathlib`.
"""

import ctypes
import os
import sys

_NEW_MOUNTS = 0x00020000
_NEW_USER = 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_NO_SUID, _NO_DEVICES = 2, 4
FAILED = 125
"""Exit code if the places could not be hidden: the program was not started."""

_library = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    encoded = [os.fsencode(text) for text in (source, target, kind)]
    _check(_library.mount(*encoded, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def _unshare() -> None:
    """Enter new namespaces of users and mounts, with the same user and group."""
    user, group = os.geteuid(), os.getegid()
    _check(_library.unshare(_NEW_USER | _NEW_MOUNTS), "new namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def hide(hidden: list[str], kept: list[str], cwd: str) -> None:
    """Hide places from this process and its children, except for what is kept in them. Raises `OSError`.

    Directories and files are empty instead.
    """
    _unshare()
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    handles = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC), os.path.isdir(path)) for path in kept]
    for path in hidden:
        if os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=0755,size=1m")
        elif os.path.isfile(path):
            _mount(os.devnull, path, "", _BIND)
    for path, handle, is_directory in handles:
        if is_directory:
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
        _mount(f"/proc/self/fd/{handle}", path, "", _BIND | _RECURSIVE)
        os.close(handle)
    for path in hidden:
        if os.path.isdir(path):
            _mount("none", path, "", _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    _unshare()  # in these namespaces, the mounts of the others cannot be removed
    os.chdir(cwd)


def main(arguments: list[str]) -> int:
    """Hide the places and become the program."""
    end = arguments.index("--")
    given: dict[str, list[str]] = {"--hidden": [], "--kept": [], "--cwd": []}
    for argument in arguments[:end]:
        flag, _, path = argument.partition("=")
        given[flag].append(path)
    program = arguments[end + 1 :]
    try:
        hide(given["--hidden"], given["--kept"], given["--cwd"][0])
    except OSError as error:
        sys.stderr.write(f"places cannot be hidden: {error.strerror or error}\n")
        return FAILED
    try:
        os.execvp(program[0], program)  # noqa: S606  # as intended, without a shell
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror or error}\n")
        return 126 if isinstance(error, PermissionError) else 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
