"""Entry point of `python -m agent_loop`, which is the same program as `amux-agent`."""

import sys

from agent_loop.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
