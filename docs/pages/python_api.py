"""The Python API reference: clients, options, runs, results, answers, events and errors, from the code."""

import ast
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_overloads, get_type_hints

import msgspec
from docs.pages.client_parts import EXAMPLES, client_parts, import_of, is_standard, places_of, values_of
from docs.pages.field_strings import field_strings_of

import agent_mux
from agent_mux import (
    AgentMux,
    BlockingAgentMux,
    BlockingRemoteMux,
    BlockingRun,
    RemoteMux,
    RemoteRun,
    RunHandle,
    RunOptions,
    RunResult,
    decode_event,
    encode_event,
    parse_transcript,
    read_policy,
    validate,
)
from agent_mux._util.field_descriptions import field_descriptions_of
from agent_mux.assembler import ExitReason, RunAttempt
from agent_mux.client.namespaces import Namespaces
from agent_mux.contract import Breach
from agent_mux.errors import (
    ERROR_CODES,
    RECOVERABLE,
    SERVICE_CODES,
    AgentMuxError,
    AuthError,
    CapabilityError,
    FieldError,
    MissingExtraError,
    ValidationError,
)
from agent_mux.events import ALL_EVENTS, CATEGORIES, CostRecord
from agent_mux.run.base import Boundary, RunState
from agent_mux.run.changed_files import ChangedFile
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.result import Denial, RunError, TokenUsage, Worktree
from agent_mux.sdk import in_process, interactions, options, policy
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.hooks import HookCall, HookDecision, HookType
from agent_mux.sdk.in_process import Block, Tool
from agent_mux.sdk.interactions import (
    ApprovalDetail,
    Approve,
    Choice,
    Defer,
    Deny,
    InputDetail,
    PendingInteraction,
    Text,
)
from agent_mux.sdk.options import DEPRECATED_FIELDS, Attachment, McpServer, RetryPolicy
from agent_mux.sdk.policy import Policy, Rule
from agent_mux.settings.resolver import ResolvedOptions

INTRODUCTION = """# Python API

<!-- Written by docs/generate.py from the code. Do not edit. -->

The names on this page are imported from `agent_mux`, and event classes from `agent_mux.events`; where a type is in
another module, its section has the import. [Use agent-mux from Python](../how-to/use-from-python.md) has examples; the
[run API specification](../spec/run-api.md) has all rules.

- [Clients](#clients): [`AgentMux`](#agentmux), [`BlockingAgentMux`](#blockingagentmux), [`RemoteMux`](#remotemux),
  [`BlockingRemoteMux`](#blockingremotemux)
- [Parts of a client](#parts-of-a-client): PARTS
- [Options of a run](#options-of-a-run): `RunOptions`
- [Runs](#runs): [`RunHandle`](#runhandle), [`RemoteRun`](#remoterun), [`BlockingRun`](#blockingrun)
- [Results](#results): [`RunResult`](#runresult)
- [Approvals and questions](#approvals-and-questions)
- [Events](#events)
- [Errors](#errors)
- [Functions](#functions)
- [Words](#words): the values of `exit_reason`, `state` and others
- [Other names](#other-names): types in signatures, and their imports
"""
PARTS_INTRODUCTION = """\
What agents keep on a machine, and what agent-mux stores. `AgentMux` and `BlockingAgentMux` have these attributes. Their
methods block, and work outside of the client's `async with` block: use `anyio.to_thread.run_sync` in coroutines.
`agent` is a name or alias; `AGENT_NOT_FOUND` if no adapter has it. `dry_run` only returns what would change.
"""
OTHER_INTRODUCTION = """\
Types in the signatures and tables above that need no section of their own. Names that begin with an underscore are type
variables.
"""
ALIASES: Mapping[str, str] = {
    "ALL": "The filter that matches every session.",
    "AgentEvent": "Any event class.",
    "AnyEventName": "The name of an event, or `*`.",
    "ErrorCode": "One of the [codes](#codes) that runs use.",
    "LISTING_TIMEOUT": "30 seconds.",
    "Responder": "A function of `PendingInteraction` that returns a `Response` or `Defer`, or a coroutine function.",
    "StateFilter": "A state of a run, or `alive`, or `over`.",
}
"""What aliases stand for whose values are too many to list."""
OPTIONS_INTRODUCTION = """\
Every option is a keyword of `run`, `start`, `plan` and `resolve_options` (`RunOptionFields`), and a field of
`RunOptions`. As a keyword, `None` means "not given", and structured options also take mappings. Durations are seconds.
"""
TWINS: Mapping[type, tuple[type, str]] = {
    BlockingAgentMux: (AgentMux, "Its methods take the arguments and raise the errors of `AgentMux`."),
    RemoteMux: (AgentMux, "Its methods take the arguments of `AgentMux`, except for those that concern this machine."),
    BlockingRemoteMux: (RemoteMux, "Its methods take the arguments and raise the errors of `RemoteMux`."),
    RemoteRun: (RunHandle, "It has the methods of `RunHandle`. Its own:"),
    BlockingRun: (RunHandle, "Its methods correspond to those of `RunHandle`, and block."),
}
"""Classes with the interface of another one, which the page describes by that."""
VALUES: Mapping[str, Sequence[type]] = {
    "option": (Attachment, McpServer, Tool, Block, HookCall, HookDecision, RetryPolicy, Policy, Rule, ResolvedOptions),
    "result": (RunError, TokenUsage, CostRecord, ChangedFile, Denial, Worktree, RunAttempt),
    "interaction": (PendingInteraction, ApprovalDetail, InputDetail, Approve, Deny, Text, Choice, Defer),
    "function": (Breach,),
}
WORDS: Mapping[str, Any] = {"ExitReason": ExitReason, "RunState": RunState, "Delivery": Delivery, "Boundary": Boundary}
FUNCTIONS: Sequence[Callable[..., Any]] = (validate, parse_transcript, read_policy, encode_event, decode_event)
ERRORS = (AgentMuxError, ValidationError, CapabilityError, AuthError, MissingExtraError)
SPECIFICATION = Path(__file__).parents[1] / "spec" / "run-api.md"
"""Has the meanings of the error codes, in its section 4."""
_SECTION = re.compile(r"^(Args|Raises|Returns|Yields|Example|Examples):$")
_DEFAULT = re.compile(r"(?<=\w|\])=(?=[\w'(])")
_CITATION = re.compile(r"\s*See docs/spec/[\w-]+\.md, section [\d.]*\d( \([^)]*\))?\.")
MAX_LINE = 100  # characters of a call
MAX_WORDS = 20  # of a Literal or a union; more are not shown
_ITEM = re.compile(r"^(\*{0,2}[\w.]+): (.*)$")


def python_api_page() -> str:
    """Return the page."""
    parts = [
        INTRODUCTION.replace("PARTS", ", ".join(f"[`{name}`](#mux{name})" for name in client_parts())),
        "## Clients\n",
        _class_section(AgentMux),
        *(_twin_section(kind) for kind in (BlockingAgentMux, RemoteMux, BlockingRemoteMux)),
        "## Parts of a client\n",
        PARTS_INTRODUCTION,
        *_client_parts_sections(),
        "## Options of a run\n",
        OPTIONS_INTRODUCTION,
        _options_table(),
        *(_value_section(kind) for kind in VALUES["option"]),
        "## Runs\n",
        _class_section(RunHandle),
        _class_section(InteractionChannel),
        *(_twin_section(kind) for kind in (RemoteRun, BlockingRun)),
        "## Results\n",
        _value_section(RunResult),
        *(_value_section(kind) for kind in VALUES["result"]),
        "## Approvals and questions\n",
        *(_value_section(kind) for kind in VALUES["interaction"]),
        _events_section(),
        _errors_section(),
        "## Functions\n",
        *(_call_section("###", function.__name__, function) for function in FUNCTIONS),
        *(_value_section(kind) for kind in VALUES["function"]),
        "## Words\n",
        _table(("type", "values"), ((f"`{name}`", _type_name(kind)) for name, kind in WORDS.items())),
    ]
    page = "\n".join(parts)
    return f"{page}\n{_other_names_section(page)}"


def _other_names_section(page: str) -> str:
    """Return the table of the names in signatures and tables that have no section, with their imports."""
    calls = "".join(re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    cells = "".join(re.findall(r"^\| `[\w()]+` \| (.*?) \|", page, re.MULTILINE))
    words = {*re.findall(r"\b[A-Z]\w*", calls), *re.findall(r"`([A-Z]\w*)`", cells)}
    described = {
        *re.findall(r"^#+ `(\w+)`$", page, re.MULTILINE),
        *WORDS,
        "RunOptions",
        *(e.__name__ for e in ALL_EVENTS),
    }
    kinds = [AgentMux, RunHandle, InteractionChannel, *TWINS, *client_parts().values(), *VALUES["result"], RunResult]
    kinds += [value for kind in client_parts().values() for value in values_of(kind)]
    rows = []
    words |= {*agent_mux.__all__} - {"__version__"}
    for word in sorted(one for one in words - described if not is_standard(one)):
        if word in agent_mux.__all__:
            rows.append((f"`{word}`", "`agent_mux`", _meaning(word, getattr(agent_mux, word))))
            continue
        places = places_of(word, [*kinds, *FUNCTIONS])
        rows += [(f"`{word}`", f"`{module}`", _meaning(word, value)) for module, value in sorted(places.items())]
    return f"## Other names\n\n{OTHER_INTRODUCTION}\n{_table(('name', 'imported from', 'meaning'), iter(rows))}"


def _meaning(name: str, value: Any) -> str:
    """Return the first paragraph of the docstring of a class, or what an alias stands for."""
    if name in ALIASES:
        return ALIASES[name]
    if isinstance(value, type):
        return _summary(value)
    if get_origin(value) is Literal:
        return "One of " + _type_name(value)
    return f"`{re.sub(r'[a-z_.]+[.](?=[A-Za-z])', '', _one_line(str(value)))}`"


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell.replace(chr(10), ' ') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


# Classes with methods


def _class_section(kind: type) -> str:
    parts = [f"### `{kind.__name__}`\n\n{_prose(inspect.getdoc(kind))}\n"]
    if kind is AgentMux:
        call = _signature(AgentMux.__init__, kind.__name__)
        parts.append(f"```text\n{_wrapped(call)}\n```\n\n{_prose(inspect.getdoc(AgentMux.__init__))}\n")
    attributes = {**(_attribute_strings(kind) if kind is AgentMux else {})}
    attributes = {name: text for name, text in attributes.items() if not name.startswith("_")}
    attributes |= {name: _summary(one) for name, one in _properties(kind)}
    if attributes:
        parts.append(
            _table(("attribute", "meaning"), ((f"`{name}`", _one_line(text)) for name, text in attributes.items()))
        )
    parts += [_call_section("####", f"{kind.__name__}.{name}", method) for name, method in _methods(kind)]
    return "\n".join(parts)


def _client_parts_sections() -> Iterator[str]:
    """Yield the section of each manager: what it is for, its methods, and the types that only it uses."""
    described: set[type] = set()
    for attribute, kind in client_parts().items():
        intro = f"### `mux.{attribute}`\n\n{_summary(vars(Namespaces)[attribute])}\n\n{_import_line(kind)}"
        yield f"{intro}{_prose(inspect.getdoc(kind))}\n{_example(attribute)}"
        if kind in described:
            yield f"The methods are those of [`mux.{_first_with(kind)}`](#mux{_first_with(kind)}).\n"
            continue
        rows = [(f"`{name}`", _summary(one)) for name, one in _properties(kind)]
        if rows:
            yield _table(("attribute", "meaning"), iter(rows))
        yield from (_call_section("####", f"mux.{attribute}.{name}", method) for name, method in _methods(kind))
        yield from (_value_section(value, "####") for value in values_of(kind) if value not in described)
        described |= {kind, *values_of(kind)}


def _first_with(kind: type) -> str:
    return next(name for name, one in client_parts().items() if one is kind)


def _import_line(kind: Any) -> str:
    """Return the import of a type that is not imported from `agent_mux`, as a paragraph."""
    statement = import_of(kind.__name__, kind)
    return "" if statement.startswith("from agent_mux import ") else f"`{statement}`\n\n"


def _example(attribute: str) -> str:
    """Return the example of a manager as a block of code, with its imports."""
    code = EXAMPLES[attribute]
    imports = {"McpServer(": "from agent_mux import McpServer\n\n", "Path(": "from pathlib import Path\n\n"}
    before = "".join(statement for call, statement in imports.items() if call in code)
    return f"\n```python fragment\n{before}{code}\n```\n"


def _call_section(level: str, name: str, function: Callable[..., Any]) -> str:
    calls = "\n".join(_wrapped(_signature(one)) for one in get_overloads(function) or (function,))
    return f"{level} `{name}`\n\n```text\n{calls}\n```\n\n{_prose(inspect.getdoc(function))}\n"


def _wrapped(call: str) -> str:
    """Return a call in lines that fit into a page: with one argument on each line if it is long."""
    if len(call) <= MAX_LINE:
        return call
    start, _, rest = call.partition("(")
    arguments, _, result = rest.rpartition(")")
    depth, lines = 0, [""]
    for character in arguments:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            lines.append("")
        else:
            lines[-1] += character
    return f"{start}(\n" + "".join(f"    {line.strip()},\n" for line in lines) + f"){result}"


def _twin_section(kind: type) -> str:
    twin, sentence = TWINS[kind]
    own = [
        (name, method) for name, method in _methods(kind) if kind is not RemoteRun or name not in dict(_methods(twin))
    ]
    rows = ((f"`{name}`", _summary(method)) for name, method in own)
    return f"### `{kind.__name__}`\n\n{_prose(inspect.getdoc(kind))}\n\n{sentence}\n\n" + _table(
        ("method", "meaning"), rows
    )


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members of a class and of our classes that it inherits from, in the order of the source."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith("agent_mux"):
            for name, value in vars(base).items():
                if not name.startswith("_") and name not in seen:
                    seen.add(name)
                    yield name, value


def _methods(kind: type) -> list[tuple[str, FunctionType]]:
    return [(name, value) for name, value in _members(kind) if isinstance(value, FunctionType)]


def _properties(kind: type) -> list[tuple[str, property]]:
    return [(name, value) for name, value in _members(kind) if isinstance(value, property)]


def _attribute_strings(kind: type) -> dict[str, str]:
    """Return the attributes that `__init__` assigns, with the strings below the assignments."""
    (function,) = _tree(kind.__init__).body
    body = function.body if isinstance(function, ast.FunctionDef) else []
    return {
        statement.target.attr if isinstance(statement, ast.AnnAssign) else statement.targets[0].attr: below.value.value
        for statement, below in pairwise(body)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(statement.targets[0] if isinstance(statement, ast.Assign) else statement.target, ast.Attribute)
    }


@cache
def _tree(function: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def _signature(function: Any, name: str | None = None) -> str:
    """Return a call as in the source: names and types of the arguments, without `self`."""
    definition: Any = _tree(function).body[0]
    arguments = definition.args
    for positional in (arguments.posonlyargs, arguments.args):
        if positional and positional[0].arg == "self":
            del positional[0]
    written = _DEFAULT.sub(" = ", ast.unparse(arguments).removeprefix("/, "))
    prefix = "await " if isinstance(definition, ast.AsyncFunctionDef) else ""
    result = "" if definition.returns is None or name else f" -> {ast.unparse(definition.returns)}".replace("'", "")
    return _QUALIFIER.sub(
        "", _PRIVATE.sub(lambda one: _SHOWN_AS[one[0]], f"{prefix}{name or definition.name}({written}){result}")
    )


_SHOWN_AS = {"_Handler": "Callable", "_Models": "tuple[ModelCapabilities, ...]"}
_PRIVATE = re.compile("|".join(_SHOWN_AS))
_QUALIFIER = re.compile(r"\b[a-z_]+\.(?=[A-Z])")


# Docstrings


def _prose(text: str | None) -> str:
    """Return a docstring as Markdown: `Args` and `Raises` as lists, without examples."""
    lines: list[str] = []
    is_example = False
    for line in (text or "").splitlines():
        section = _SECTION.match(line)
        item = _ITEM.match(line.strip()) if line.startswith("    ") and not line.startswith("     ") else None
        if section:
            is_example = section[1].startswith("Example")
            lines += [] if is_example else [f"**{section[1]}**", ""]
        elif is_example and (line.startswith("    ") or not line):
            continue
        elif item:
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            is_example = False
            lines.append(f"  {line.strip()}" if line.startswith("    ") else line)
    return (
        _CITATION.sub("", "\n".join(line.rstrip() for line in lines))
        .strip()
        .replace("\n**", "\n\n**")
        .replace("\n\n\n", "\n\n")
    )


def _summary(member: Any) -> str:
    """Return the first paragraph of a docstring."""
    return _one_line(_CITATION.sub("", (inspect.getdoc(member) or "").split("\n\n", maxsplit=1)[0]))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# Values


def _options_table() -> str:
    descriptions = field_descriptions_of(RunOptions)
    hints = _hints(RunOptions)
    rows = [
        (f"`{one.name}`", _type_name(hints[one.name]), _default(one), _one_line(descriptions[one.name]))
        for one in fields(RunOptions)
    ]
    rows += [
        (f"`{old}`", f"as `{new}`", "not given", f"Deprecated name of `{new}`.")
        for old, new in DEPRECATED_FIELDS.items()
    ]
    return _table(("option", "type", "default", "meaning"), iter(rows))


def _value_section(kind: type, level: str = "###") -> str:
    """Return the section of a dataclass or Struct: its fields, its properties and its methods."""
    hints, descriptions = _hints(kind), {**field_strings_of(kind), **field_descriptions_of(kind)}
    specs = fields(kind) if is_dataclass(kind) else msgspec.structs.fields(kind)
    rows = [
        (f"`{one.name}`", _type_name(hints[one.name]), _default(one), _one_line(descriptions.get(one.name, "")))
        for one in specs
        if one.name != "texts"  # how `text` and `messages` are read
    ]
    rows += [(f"`{name}`", "property", "-", _summary(one)) for name, one in _properties(kind)]
    rows += [(f"`{name}()`", "method", "-", _summary(one)) for name, one in _methods(kind)]
    head = ("field", "type", "default", "meaning")
    if kind not in VALUES["option"]:  # made by agent-mux: callers do not need the defaults
        head, rows = ("field", "type", "meaning"), [(name, shape, meaning) for name, shape, _, meaning in rows]
    intro = f"{level} `{kind.__name__}`\n\n{_import_line(kind)}{_prose(inspect.getdoc(kind))}\n\n"
    return intro + (_table(head, iter(rows)) if rows else "")


def _hints(kind: type) -> dict[str, Any]:
    names = {**vars(options), **vars(policy), **vars(interactions), **vars(in_process), "HookType": HookType}
    return get_type_hints(kind, localns=names)


def _default(spec: Any) -> str:
    missing = (MISSING, msgspec.NODEFAULT)
    if spec.default_factory not in missing:
        return f"`{spec.default_factory()!r}`"
    if spec.default in missing:
        return "required"
    if isinstance(spec.default, frozenset):
        return ", ".join(f"`{one}`" for one in sorted(spec.default))
    return f"`{spec.default!r}`"


def _type_name(hint: Any) -> str:
    """Return a type as a reader of a table writes it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint == interactions.Responder:
        return "a function of `PendingInteraction`"
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin in (UnionType, Union):
        return "events" if len(arguments) > MAX_WORDS else " \\| ".join(map(_type_name, arguments))
    if origin is Literal:
        return "error code" if len(arguments) > MAX_WORDS else " \\| ".join(f"`{one!r}`" for one in arguments)
    if origin in (Sequence, tuple, list, frozenset):
        return f"list of {_type_name(arguments[0])}"
    return _PLAIN_TYPES.get(origin or hint) or f"`{hint.__name__}`"


_PLAIN_TYPES: Mapping[Any, str] = {
    os.PathLike: "path",
    Mapping: "mapping",
    dict: "mapping",
    NoneType: "None",
    Any: "any",
}


# Events and errors


def _events_section() -> str:
    rows = (
        (f"`{event.__name__}`", f"[`{event.type}`](events.md#{event.type})", category, _summary(event))
        for category, events in CATEGORIES.items()
        for event in events
    )
    head = "## Events\n\nEvent classes are immutable; `event.type` is the name."
    return f"{head} The [event reference](events.md) has all fields.\n\n" + _table(
        ("class", "name", "category", "meaning"), rows
    )


def _errors_section() -> str:
    parts = ["## Errors\n\nErrors store data; `str(error)` states what happened and the next step.\n"]
    parts += [f"### `{kind.__name__}`\n\n{_prose(inspect.getdoc(kind))}\n" for kind in ERRORS]
    parts.append(_value_section(FieldError))
    parts.append(
        "### Codes\n\nThe values of `AgentMuxError.code`. Codes of the service are used by remote clients and the "
        "queue only. Recoverable: repeating the same call may succeed.\n"
    )
    meanings = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|$", SPECIFICATION.read_text("utf-8"), re.MULTILINE))
    rows = (
        (
            f"`{code}`",
            meanings[code],
            "queues and services" if code in SERVICE_CODES else "runs",
            "yes" if code in RECOVERABLE else "no",
        )
        for code in (*ERROR_CODES, *SERVICE_CODES)
    )
    parts.append(_table(("code", "meaning", "occurs in", "recoverable"), rows))
    return "\n".join(parts)
