"""Program that calls `handle(call)` of one Python file for one call: `python script.py FILE`. See `programs.py`.

Output of the file goes to stderr, because stdout is reserved for the decision.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(path: str) -> None:
    """Read the call from stdin, call the handler, and print the decision."""
    package = str(Path(__file__).parents[3])
    sys.path[:1] = [package]  # replaces this directory, which Python adds
    from agent_mux.agents.hooks.encoding import call_from_plain, decision_from_plain, decision_to_plain  # noqa: PLC0415
    from agent_mux.sdk.hooks import HookDecision  # noqa: PLC0415  # needs the changed path

    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    call = call_from_plain(json.load(sys.stdin))
    decision = _load_module(path).handle(call)
    parsed = decision if isinstance(decision, HookDecision) else decision_from_plain(decision)
    json.dump(decision_to_plain(parsed), output)
    output.close()


def _load_module(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("hook_script", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["hook_script"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "handle", None)):
        raise SystemExit(f"{path} has no function handle(call)")
    return module


if __name__ == "__main__":
    main(sys.argv[1])
