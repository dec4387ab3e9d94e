"""The managers of a client (`mux.sessions`, `mux.models`, ...) and the types that their methods take and return."""

import ast
import builtins
import collections.abc
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import ModuleType
from typing import Any, ForwardRef

import msgspec

import agent_mux
from agent_mux.client.namespaces import Namespaces

_WORD = re.compile(r"\b[A-Z]\w*")
EXAMPLES: Mapping[str, str] = {
    "sessions": """\
for session in mux.sessions.list():
    print(session.id, session.title, session.cost.total_usd)
print(mux.sessions.export("claude:6f1c", "markdown"))""",
    "runs": """\
for record in mux.runs.list(state="alive"):
    print(record.run_id, record.agent, record.prompt)
print(mux.runs.result(mux.runs.find()))""",
    "quota": """\
for quota in mux.quota.list():
    print(quota.agent, [(window.window, window.used_fraction) for window in quota.windows])""",
    "profiles": """\
mux.profiles.set("careful", {"approval_mode": "prompt", "timeout": 600})
print(mux.profiles.get("careful").shown())""",
    "worktrees": """\
for kept in mux.worktrees.list():
    print(kept.run_id, kept.path)
    mux.worktrees.apply(kept.run_id)""",
    "comparisons": """\
print(mux.comparisons.report().selection)
mux.comparisons.apply("claude-1")""",
    "models": """\
for model in mux.models.list("claude"):
    print(model.model_id, model.context_window, model.price)""",
    "config": """\
change = mux.config.set_field("claude", "permissions.allow", ["Read"], dry_run=True)
print(change.path, change.after)""",
    "auth": """\
state = mux.auth.check("codex")
if state.status != "authenticated":
    print(mux.auth.setup("codex"))""",
    "installer": """\
for agent in mux.installer.missing():
    print(agent, mux.installer.install(agent, dry_run=True).command)""",
    "mcp": """\
mux.mcp.add("claude", McpServer(name="docs", command="docs-server"), scope="project")""",
    "skills": """\
mux.skills.add("claude", Path("skills/release"), scope="project")""",
    "subagents": """\
print([one.name for one in mux.subagents.list("claude")])""",
    "plugins": """\
print([one.name for one in mux.plugins.list("claude")])
mux.plugins.install("claude", "formatter@tools", dry_run=True)""",
    "hooks": """\
mux.hooks.add(id="notify", hook_type="stop", handler="command", target=["notify-send", "done"])""",
}
"""An example for each manager; `mux` is an `AgentMux`. tests/typing checks them."""


def client_parts() -> dict[str, type]:
    """Return the managers: the attribute of the client, and the class."""
    return {
        name: resolved(one.fget.__annotations__["return"].strip('"'), Namespaces)
        for name, one in vars(Namespaces).items()
        if isinstance(one, property) and one.fget and not name.startswith("_")
    }


def import_of(name: str, value: Any) -> str:
    """Return the statement that imports a name: from `agent_mux` if it is public there, else from its module."""
    if name in agent_mux.__all__:
        return f"from agent_mux import {name}"
    if hasattr(agent_mux.events, name):
        return f"from agent_mux.events import {name}"
    return f"from {value.__module__} import {name}"


def values_of(kind: type) -> list[type]:
    """Return the dataclasses and Structs in the signatures of a class that `agent_mux` does not have itself."""
    found = {one.__name__: one for function in _functions(kind) for one in types_of(function, kind)}
    return [
        one
        for name, one in sorted(found.items())
        if (is_dataclass(one) or issubclass(one, msgspec.Struct))
        and name not in agent_mux.__all__
        and not hasattr(agent_mux.events, name)
    ]


def types_of(function: Any, kind: type) -> set[type]:
    """Return our types in the annotations of a method of `kind`, quoted ones included."""
    found: set[type] = set()
    for annotation in function.__annotations__.values():
        found |= _types_in(annotation, kind)
    return {one for one in found if one.__module__.startswith("agent_mux")}


def _types_in(annotation: Any, kind: type) -> set[type]:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        words = (
            word for word in _WORD.findall(annotation) if not hasattr(typing, word) and not hasattr(builtins, word)
        )
        return {one for word in words if isinstance(one := resolved(word, kind), type)}
    if arguments := typing.get_args(annotation):
        return {one for argument in arguments for one in _types_in(argument, kind)}
    return {annotation} if isinstance(annotation, type) else set()


def is_standard(word: str) -> bool:
    """Return whether a name is one of Python's, which this page need not explain."""
    return word == "Path" or any(hasattr(module, word) for module in (builtins, typing, collections.abc))


def resolved(name: str, kind: type) -> Any:
    """Return what a name means in the modules of a class; imports for type checkers count. Fail if it means nothing."""
    for base in _ours(kind):
        module = importlib.import_module(base.__module__)
        if hasattr(module, name):
            return getattr(module, name)
        if name in (origins := _imports(module)):
            return getattr(importlib.import_module(origins[name]), name)
    raise LookupError(f"{name}, in a signature of {kind.__name__}, is imported by none of its modules")


def places_of(name: str, users: Iterable[Any]) -> dict[str, Any]:
    """Return the modules that define a name which the modules of these classes and functions use, and its value."""
    found: dict[str, Any] = {}
    kinds = [base for user in users for base in (_ours(user) if isinstance(user, type) else [user])]
    for module in {one.__module__ for one in kinds}:
        imports = _imports(importlib.import_module(module))
        used = [f"{package}.{one}" for one, package in imports.items() if f"{package}.{one}" in sys.modules]
        for place in [module, *used]:
            defining = _defining(name, place)
            if defining is not None:
                found[defining] = getattr(importlib.import_module(defining), name)
    return found


def _defining(name: str, module: str) -> str | None:
    """Return the module that defines a name which this one defines or imports; None if it does neither."""
    loaded = importlib.import_module(module)
    if name in _definitions(loaded):
        return module
    return _defining(name, _imports(loaded)[name]) if name in _imports(loaded) else None


@cache
def _definitions(module: ModuleType) -> set[str]:
    body = ast.parse(inspect.getsource(module)).body
    classes = {one.name for one in body if isinstance(one, ast.ClassDef)}
    assigned = {target for one in body if isinstance(one, ast.Assign) for target in one.targets}
    assigned |= {one.target for one in body if isinstance(one, ast.AnnAssign)}
    return classes | {one.id for one in assigned if isinstance(one, ast.Name)}


def _ours(kind: type) -> list[type]:
    return [one for one in kind.__mro__ if one.__module__.startswith("agent_mux")]


def _functions(kind: type) -> Iterator[Any]:
    for base in _ours(kind):
        for name, value in vars(base).items():
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(function) and not name.startswith("_"):
                yield function


@cache
def _imports(module: ModuleType) -> dict[str, str]:
    """Return what a module imports from our modules: the name, and the module that it comes from."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    ours = [one for one in nodes if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("agent_")]
    return {name.name: node.module or "" for node in ours for name in node.names}
