"""What has to be installed besides agent-mux for programs at a terminal."""

from importlib.util import find_spec

from agent_mux.errors import AgentMuxError

EXTRA = ("pyte",)


def require_extra(*modules: str) -> None:
    """See that these modules are there, by default all. Raises PTY_NOT_AVAILABLE, saying how to get them."""
    missing = [module for module in modules or EXTRA if find_spec(module) is None]
    if missing:
        needed = f"a program at a terminal needs {' and '.join(missing)}"
        raise AgentMuxError("PTY_NOT_AVAILABLE", f"{needed}: pip install 'agent-mux[terminal]'")
