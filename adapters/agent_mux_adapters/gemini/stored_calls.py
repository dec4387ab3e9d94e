"""What came of a tool call, from the session that Gemini CLI stored: the answer that the model got.

That is more than stream-json tells: what is shown of a read file is nothing, and of a command without `--debug` not how
it ended.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux_adapters._dialects.tolerant import mapping, rows, text

_FRAME = ("<untrusted_context>\n", "\n</untrusted_context>")
_REPORT = re.compile(r"Subagent '[^'\n]*' finished\.\nTermination Reason: \w+\nResult:\n")
_ESCAPED, _END = "&lt;/untrusted_context&gt;", "</untrusted_context>"


def result_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A stored call as a `tool_result` line."""
    answers = [mapping(mapping(part.get("functionResponse")).get("response")) for part in rows(call.get("result"))]
    error = "\n".join(filter(None, (text(answer.get("error")) for answer in answers)))
    output = "\n".join(_unframed(text(answer.get("output"))) for answer in answers if "output" in answer)
    if call.get("status") == "success":
        return {"status": "success", "output": output}
    return {"status": "error", "output": output, "error": {"message": error}}


def has_created(call: Mapping[str, Any]) -> bool:
    """It wrote a file that was not there before."""
    return mapping(call.get("resultDisplay")).get("isNewFile") is True


def _unframed(output: str) -> str:
    report = _REPORT.match(output)
    if report is not None:
        return output[report.end() :]
    begin, end = _FRAME
    if not output.startswith(begin) or not output.endswith(end):
        return output
    return output[len(begin) : -len(end)].replace(_ESCAPED, _END)
