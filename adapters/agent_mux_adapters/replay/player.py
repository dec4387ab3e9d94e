"""Plays a recording as the agent's process would: `python -I -S player.py RECORDING SPEED PATIENCE`.

stdout and stderr as recorded, at the recorded times (divided by SPEED; 0: at once), waiting at most PATIENCE seconds
for what was sent on stdin at that point; then the recorded exit code, or death by the recorded signal. When this run
sends something of another kind than the recording has, it says so on stderr and exits with code 3: what would follow
was never recorded. What a signal would have made of the agent was not recorded either: the player just dies of it.

Runs in an interpreter without site-packages, so it costs little: standard library only.
"""

import sys
from pathlib import Path

VERSION = "1.0.0"


def main(arguments: list[str]) -> int:
    """Play, or say which version this is."""
    if arguments == ["--version"]:
        sys.stdout.write(f"agent-mux player {VERSION}\n")
        return 0
    sys.path.insert(0, str(Path(__file__).parent))
    from playback import process  # type: ignore[import-not-found]  # noqa: PLC0415  # the sibling, without the package

    return int(process.run(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
