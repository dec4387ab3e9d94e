"""Values of the adapter contract report a field of the wrong type where they are created."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMuxError, RunOptions
from agent_mux.sdk import adapter, config, hooks, installation, models, session_files, sessions
from agent_mux.sdk.adapter import AgentCapabilities, InstallMethod, NativeProtocol, SpawnArgs, check_capabilities
from agent_mux.sdk.config import AgentConfig, ConfigField, ConfigFile
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.installation import AgentAuth, AuthMethod, DefinitionFolders, McpFiles

ADAPTER = scripted_adapter("")
PROTOCOL = next(iter(ADAPTER.protocols.values()))
MADE_BY_AGENT_MUX = {
    "AgentPaths", "ConfigSetting", "FoundCredentials", "HookCall", "HookDecision", "HookOutcome", "HookResponse",
    "Plugin", "SpawnEnvironment",
}  # fmt: skip
"""Values that agent-mux or the functions of an adapter create for each call, often from native data."""


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (
            lambda: AgentCapabilities(agent="wombat", emits=("text_delta", "cost")),  # type: ignore[arg-type]
            ("AgentCapabilities of 'wombat': emits is a tuple, ('text_delta', 'cost'); "
            "expected a frozenset of str: frozenset({'cost', 'text_delta'})"),
        ),
        (
            lambda: AgentCapabilities(agent="wombat", approval_modes="yolo"),  # type: ignore[arg-type]
            ("AgentCapabilities of 'wombat': approval_modes is a str, 'yolo'; "
            "expected a tuple of one of 'yolo', 'prompt', 'deny', 'plan': ('yolo',)"),
        ),
        (
            lambda: AgentCapabilities(agent="wombat", can_resume="yes"),  # type: ignore[arg-type]
            "AgentCapabilities of 'wombat': can_resume is a str, 'yes'; expected a bool",
        ),
        (
            lambda: AgentCapabilities(agent="wombat", max_parallel=True),
            "AgentCapabilities of 'wombat': max_parallel is a bool, True; expected an int or None",
        ),
        (
            lambda: replace(ADAPTER, executables="wombat"),
            "Adapter of 'scripted': executables is a str, 'wombat'; expected a tuple of str: ('wombat',)",
        ),
        (
            lambda: replace(ADAPTER, install=InstallMethod(kind="npm", command="npm install wombat")),
            "expected a tuple of InstallMethod",
        ),
        (lambda: replace(ADAPTER, spawn=None), "Adapter of 'scripted': spawn is None; expected a function"),
        (lambda: replace(ADAPTER, protocols=[PROTOCOL]), "expected a dict of str to NativeProtocol"),
        (lambda: replace(PROTOCOL, streams={"text"}), "frozenset({'text'})"),
        (lambda: replace(PROTOCOL, streams=frozenset({"words"})), "one of 'text', 'tool_calls', 'thinking'"),
        (lambda: replace(PROTOCOL, loses="the output"), "expected a tuple of str or None"),
        (lambda: SpawnArgs(argv="wombat --json", protocol="p"), "argv is a str, 'wombat --json'"),  # type: ignore[arg-type]
        (lambda: SpawnArgs(argv=("wombat",), protocol="p", env={"N": 1}), "env is a dict, {'N': 1}"),  # type: ignore[dict-item]
        (lambda: SpawnArgs(argv=("wombat",), protocol="p", notes=("a", None)), "notes is a tuple"),  # type: ignore[arg-type]
        (lambda: ConfigFile(scope="global", format="xml", path=lambda _: None), "format is a str, 'xml'"),  # type: ignore[arg-type]
        (lambda: AgentConfig(files=[], fields={}), "expected a tuple of ConfigFile: ()"),  # type: ignore[arg-type]
        (lambda: AgentAuth(methods=AuthMethod(name="key", display_name="a key"), steps=()), "methods is an AuthMethod"),  # type: ignore[arg-type]
        (lambda: AuthMethod(name="key", display_name="a key", variables=["KEY"]), "('KEY',)"),  # type: ignore[arg-type]
        (lambda: McpFiles(files=(), read=None, write=dict), "read is None; expected a function"),  # type: ignore[arg-type]
        (lambda: DefinitionFolders(folders=(), layout="tree", file="a"), "layout is a str, 'tree'"),  # type: ignore[arg-type]
        (lambda: ConfigField(kind="string", meaning=None), "meaning is None; expected a str"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_value_of_another_type_is_reported_with_field_and_expected_type(
    create: Callable[[], Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        create()
    assert message in str(caught.value)


def test_long_values_are_shortened() -> None:
    with pytest.raises(TypeError) as caught:
        InstallMethod(kind="npm", command="x", requires=["n" * 1000])  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


def test_unknown_event_type_in_emits_is_reported_with_the_closest_one() -> None:
    with pytest.raises(
        ValueError, match=r"emits has 'text_detla', which is not an event type; did you mean 'text_delta'\?"
    ):
        AgentCapabilities(agent="wombat", emits=frozenset({"text_detla"}))


def test_protocol_under_another_name_is_reported() -> None:
    with pytest.raises(ValueError, match=r"protocols\['other'\] is named"):
        replace(ADAPTER, protocols={"other": PROTOCOL})


def test_every_part_of_an_adapter_is_checked() -> None:
    unchecked = {
        kind.__name__
        for module in (adapter, config, hooks, installation, models, session_files, sessions)
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
        if not issubclass(kind, Declaration)
    }
    assert unchecked == MADE_BY_AGENT_MUX


def test_fields_of_unions_and_annotated_types_accept_their_values() -> None:
    accepted = replace(PROTOCOL, loses=("the output",), quiet_after=1)
    assert isinstance(accepted, NativeProtocol)
    assert {field.name for field in fields(AgentCapabilities)} >= {"emits", "max_parallel"}
    assert AgentCapabilities(agent="wombat", max_parallel=2, emits=frozenset({"cost"})).emits == {"cost"}


@pytest.mark.parametrize(("modes", "hint"), [(("yolo",), "choose yolo (--yolo)"), (("yolo", "deny"), "deny (--deny)")])
def test_unsupported_approval_mode_names_the_supported_flags(modes: tuple[Any, ...], hint: str) -> None:
    options = RunOptions(agent="wombat", prompt="go", approval_mode="prompt")
    with pytest.raises(AgentMuxError, match="does not support approval mode 'prompt'") as caught:
        check_capabilities(options, AgentCapabilities(agent="wombat", approval_modes=modes))
    assert str(caught.value).endswith(hint) or hint in str(caught.value)
