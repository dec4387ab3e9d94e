"""Who is at the other end of a control socket."""

import os
import socket
import struct
from typing import NamedTuple

from agent_mux.process.marker import belongs_to_run


class Peer(NamedTuple):
    """The credentials of a connected process. None: unknown."""

    pid: int | None
    uid: int | None


def peer_of(connection: socket.socket) -> Peer:
    """Return who connected, as the kernel recorded it. Without that, the mode of the socket decides who may connect."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:  # not Linux
        return Peer(None, None)
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return Peer(pid, uid)


def is_allowed(peer: Peer) -> bool:
    """Return whether this user may watch and control our runs: the same user, or root."""
    return peer.uid is None or peer.uid in {os.geteuid(), 0}


def is_agent(peer: Peer, run_id: str) -> bool:
    """Return whether the peer may be a process of the run itself, which must not approve its own requests.

    A process in another process namespace, such as a sandbox of the agent, has no id here (0).
    """
    return peer.pid == 0 or (peer.pid is not None and belongs_to_run(peer.pid, run_id))
