"""Run a command without network access: `python -m agent_mux_testing.offline -- pytest tests/e2e`.

The command runs in a network namespace of its own (Linux) with only `lo`. Root needs one system call for it; other
users also get a user namespace, where the kernel allows it. Where neither works, the command is refused with exit code
77 ("skipped"), unless `AMUX_E2E_ALLOW_NETWORK` is set.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

__all__ = ["ALLOW_NETWORK", "EXIT_REFUSED", "enter_offline", "is_offline"]

ALLOW_NETWORK = "AMUX_E2E_ALLOW_NETWORK"
EXIT_REFUSED = 77  # automake's code for a skipped test
EXIT_USAGE = 2
EXIT_NOT_FOUND = 127

_CLONE_NEWUSER = 0x10000000  # sched.h
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS = 0x8913  # netdevice(7)
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_IFF_LOOPBACK = 0x8
_IFREQ_FLAGS = struct.Struct("16sh22x")  # struct ifreq: name, flags, the rest of its union


def is_offline() -> bool:
    """Return whether only the loopback interface is up. A new namespace may contain tunnels, which are down."""
    if sys.platform != "linux":
        return False
    flags = [_interface_flags(name) for _, name in socket.if_nameindex()]
    return all(flag & _IFF_LOOPBACK or not flag & _IFF_UP for flag in flags)


def enter_offline() -> None:
    """Move this process, and all processes that it starts later, into a network namespace with only `lo`.

    Raise `OSError` when that is not possible. Call it before any thread starts: a namespace belongs to a thread.
    """
    if not is_offline():
        _leave_network()
    if not _interface_flags("lo") & _IFF_UP:
        _bring_up("lo")


def _leave_network() -> None:
    if os.geteuid() == 0:
        _unshare(_CLONE_NEWNET)
        return
    user, group = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    _keep_identity(user, group)


def _unshare(flags: int) -> None:
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no network namespaces")
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")


def _keep_identity(user: int, group: int) -> None:
    """Keep user and group ids inside the user namespace; see user_namespaces(7)."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _bring_up(interface: str) -> None:
    """Set an interface up, as `ip link set <interface> up`; iproute2 may not be installed."""
    request = _IFREQ_FLAGS.pack(interface.encode(), _interface_flags(interface) | _IFF_UP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def _interface_flags(interface: str) -> int:
    request = _IFREQ_FLAGS.pack(interface.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        _, flags = _IFREQ_FLAGS.unpack(fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))
    return int(flags)


def main() -> int:
    """Replace this process by the command, offline. Return an exit code only when that is not possible."""
    command = sys.argv[2:] if sys.argv[1:2] == ["--"] else sys.argv[1:]
    if not command:
        sys.stderr.write("usage: python -m agent_mux_testing.offline -- COMMAND [ARGUMENT ...]\n")
        return EXIT_USAGE
    try:
        enter_offline()
    except OSError as error:
        if not os.environ.get(ALLOW_NETWORK):
            sys.stderr.write(
                f"refused: cannot cut off the network ({error}), so {command[0]} was not started; "
                f"run this as root on Linux, or set {ALLOW_NETWORK}=1 to run it with the network\n"
            )
            return EXIT_REFUSED
        sys.stderr.write(f"warning: the network stays on ({error}), as {ALLOW_NETWORK} allows\n")
    try:
        os.execvp(command[0], command)  # noqa: S606  # no shell is wanted
    except OSError as error:
        sys.stderr.write(f"error: {command[0]}: {error.strerror}\n")
        return EXIT_NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
