"""A scripted model behind the APIs that real CLIs use. See `script.py`."""

from agent_mux_testing.model_server.requests import AnswerSource, ChosenStep, RecordedRequest, RequestContent
from agent_mux_testing.model_server.script import (
    CustomToolCall,
    FunctionCall,
    HttpError,
    Opaque,
    Script,
    ScriptMessage,
    ScriptReasoning,
    ScriptStep,
    ScriptText,
    ScriptThinking,
    ServerToolUse,
    ToolUse,
    load_script,
    parse_script,
    say,
)
from agent_mux_testing.model_server.server import ScriptedModelServer

__all__ = [
    "AnswerSource",
    "ChosenStep",
    "CustomToolCall",
    "FunctionCall",
    "HttpError",
    "Opaque",
    "RecordedRequest",
    "RequestContent",
    "Script",
    "ScriptMessage",
    "ScriptReasoning",
    "ScriptStep",
    "ScriptText",
    "ScriptThinking",
    "ScriptedModelServer",
    "ServerToolUse",
    "ToolUse",
    "load_script",
    "parse_script",
    "say",
]
