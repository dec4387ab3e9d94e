"""Entry point of the console script `amux`.

`amux --version` is answered before anything else is imported: it costs little more than starting Python. Agents wait
for `amux hooks AGENT handle TYPE` before each of their tools: it goes without the rest of the command line.
"""

import sys
from collections.abc import Sequence

from agent_mux.version import __version__

_VERSION = (["--version"], ["-V"], ["version"])


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit code. `argv` is without the program's name."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments in _VERSION and sys.stdout is not None:
        try:
            sys.stdout.write(f"amux {__version__}\n")
            sys.stdout.flush()
        except OSError as error:
            from agent_mux.cli.errors import report

            return report(error)
        return 0
    match arguments:
        case ["hooks", agent, "handle", hook_type] if not any(word.startswith("-") for word in (agent, hook_type)):
            from agent_mux.cli.hook_answer import answer_hook

            return answer_hook(agent, hook_type)
    from agent_mux.cli.execution import execute

    return execute(arguments)


if __name__ == "__main__":
    sys.exit(main())
