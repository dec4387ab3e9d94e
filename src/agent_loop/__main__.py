"""`python -m agent_loop`: the same as `amux-agent`."""

import sys

from agent_loop.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
