"""The process in which code that may hang or crash is executed: regular expressions, schemas, functions of a check.

It is a script for an isolated interpreter. It reads a request from standard input and writes a verdict into the file
that the request names. Whatever it prints is output of the check.
"""

import importlib
import importlib.metadata
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MAX_DETAIL = 1000  # characters
_Verdict = tuple[str, str]  # status and detail


def main() -> None:
    """Read one request from standard input and write its verdict."""
    request = json.load(sys.stdin)
    status, detail = _KINDS[request["kind"]](request)
    answer = json.dumps({"status": status, "detail": detail[:MAX_DETAIL]})
    Path(request["verdict"]).write_text(answer, encoding="utf-8")


def _match(request: Mapping[str, Any]) -> _Verdict:
    found = re.search(request["pattern"], request["text"], re.MULTILINE)
    return ("pass", "") if found else ("fail", f"{request['file']} does not match {request['pattern']!r}")


def _schema(request: Mapping[str, Any]) -> _Verdict:
    sys.path.append(request["source"])
    from agent_mux.compare.checks.schemas import problem_of_value  # noqa: PLC0415  # only this kind needs it

    problem = problem_of_value(request["schema"], request["value"])
    return ("pass", "") if problem is None else ("fail", f"{request['what']} does not match the schema: {problem}")


def _python(request: Mapping[str, Any]) -> _Verdict:
    sys.path[:0] = request["path"]
    try:
        from agent_mux.compare.checks.context import CheckContext  # noqa: PLC0415  # found on the path of the client

        function = _load(request["python"], request["group"])
    except Exception as error:  # noqa: BLE001  # a module may raise anything
        return "error", f"{request['python']} cannot be imported: {type(error).__name__}: {error}"
    context = CheckContext(
        checkout=Path(request["checkout"]),
        result=request["result"],
        changed=tuple(request["changed"]),
        arguments=request["arguments"],
    )
    try:
        return _interpret(function(context))
    except Exception as error:  # noqa: BLE001  # the trial may have caused it
        import traceback  # noqa: PLC0415

        traceback.print_exc()
        return "fail", str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


def _load(name: str, group: str) -> Callable[..., Any]:
    """Return the function. Raise whatever its module raises."""
    module, colon, attributes = name.partition(":")
    if colon:
        found: Any = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    else:
        [point] = importlib.metadata.entry_points(group=group, name=name)
        found = point.load()
    if not callable(found):
        raise TypeError(f"{type(found).__name__} is not callable")
    function: Callable[..., Any] = found
    return function


def _interpret(answer: Any) -> _Verdict:
    if answer is None or answer is True:
        return "pass", ""
    if answer is False:
        return "fail", "the function returned False"
    if isinstance(answer, str):
        return ("fail", answer) if answer else ("pass", "")
    return "error", f"the function returned {type(answer).__name__}; return None, a bool or a str"


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], _Verdict]] = {"match": _match, "schema": _schema, "python": _python}


if __name__ == "__main__":
    main()
