"""`python -m agent_mux`: the command `amux`."""

import sys

from agent_mux.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
