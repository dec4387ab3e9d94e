"""The player: behaves like the recorded agent's process. `python -I -S player.py RECORDING SPEED PATIENCE`.

Writes stdout and stderr as recorded, at the recorded times (divided by SPEED; 0: without pauses). Where the recording
has input on stdin, the player waits for it at most PATIENCE seconds. It ends with the recorded exit code, or by the
recorded signal. If this run sends input of another kind than recorded, the player reports it on stderr and exits with
code 3, because there is no recorded output to continue with. A signal just ends the player: how the agent would have
handled it was not recorded.

It runs in an interpreter without site-packages, which starts fast: standard library only.
"""

import sys
from pathlib import Path

VERSION = "1.0.0"


def main(arguments: list[str]) -> int:
    """Play a recording, or print the version."""
    if arguments == ["--version"]:
        sys.stdout.write(f"agent-mux player {VERSION}\n")
        return 0
    sys.path.insert(0, str(Path(__file__).parent))
    from playback import process  # type: ignore[import-not-found]  # noqa: PLC0415  # imported without its parent package

    return int(process.run(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
