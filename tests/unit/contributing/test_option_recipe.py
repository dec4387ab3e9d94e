"""Every option of a run is known in all the places that the recipe "Add an option" names."""

import ast
import re
from dataclasses import fields

from tests.unit.contributing.recipes import ROOT, Place, check_places, paths_on_page, text_of
from tests.unit.settings.test_options_json import GOOD

from agent_mux._util.field_descriptions import field_descriptions_of
from agent_mux.sdk.option_fields import RunOptionFields
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.options_json import PER_RUN_FIELDS, camel

OPTIONS = [spec.name for spec in fields(RunOptions)]
WITHOUT_RANGE = {
    "agents_doc", "collect_events", "cwd", "debug", "env", "hooks", "include_subagent_events", "inherit_env",
    "interactive", "journal", "mcp_servers", "model", "no_session", "on_approval_request", "on_input_required",
    "output_schema", "policy", "profile", "project_id", "retry_policy", "skills", "system_prompt", "track_changes",
    "carry_changes",
}  # fmt: skip
"""Options of which every value of the type is valid, or that the code that uses them checks."""
WITHOUT_FLAG = {
    "on_approval_request": "the terminal answers",
    "on_input_required": "the terminal answers",
    "collect_events": "events are printed",
    "event_buffer_size": "the command reads at once",
    "max_output_tokens": "--max-tokens",
    "inherit_env": "env -i",
    "tools": "a command line has no functions",
}
"""Options that only the library has, with the reason or the replacement."""
FUNCTIONS = {"on_approval_request", "on_input_required", "tools"}
READERS = (
    "src/agent_mux/run",
    "src/agent_mux/client",
    "src/agent_mux/settings",
    "src/agent_mux/worktrees",
    "src/agent_mux/sdk/adapter.py",
    "adapters",
)


def keys_of_command_line() -> set[str]:
    """Return the options that `options_from` sets from flags."""
    tree = ast.parse((ROOT / "src/agent_mux/cli/request.py").read_text("utf-8"))
    (function,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "options_from")
    given = max((node for node in ast.walk(function) if isinstance(node, ast.Dict)), key=lambda node: len(node.keys))
    return {key.value for key in given.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


FLAGS = keys_of_command_line()


def is_validated(option: str) -> bool:
    source = text_of("src/agent_mux/sdk/options.py").partition("def validate_options")[2]
    return option in WITHOUT_RANGE or re.search(rf"[\".]{option}\b", source) is not None


def is_read(option: str) -> bool:
    """Return whether the code that runs agents reads the option, directly or through a property of the options."""
    names = {option, {"max_output_tokens": "output_limit", "approval_timeout": "answer_within"}.get(option, option)}
    return any(re.search(rf"\.{name}\b", text_of(path)) for path in READERS for name in names)


PLACES = (
    Place(
        "src/agent_mux/sdk/options.py",
        "its description (`Meta`) and its check in `validate_options`, or WITHOUT_RANGE in test_option_recipe.py",
        lambda option: bool(field_descriptions_of(RunOptions).get(option)) and is_validated(option),
    ),
    Place(
        "src/agent_mux/sdk/option_fields.py",
        "the keyword in `RunOptionFields`",
        lambda option: option in RunOptionFields.__annotations__,
    ),
    Place(
        "docs/spec/run-api.md",
        "its rule in section 2.1",
        lambda option: re.search(rf"^\|[^|]*`{option}`", text_of("docs/spec/run-api.md"), re.MULTILINE) is not None,
    ),
    Place("src/agent_mux/run/", "the code that reads it, here or in the adapters that support it", is_read),
    Place(
        "tests/unit/settings/test_options_json.py",
        "a value in GOOD, or a reason in PER_RUN_FIELDS of src/agent_mux/settings/options_json.py",
        lambda option: camel(option) in GOOD or option in PER_RUN_FIELDS,
    ),
    Place(
        "src/agent_mux/cli/request.py",
        "its flag (declared in run_flags.py), or WITHOUT_FLAG in test_option_recipe.py",
        lambda option: option in FLAGS or option in WITHOUT_FLAG,
    ),
    Place(
        "docs/reference/",
        "its key in openapi.json, a generated document (`make docs`)",
        lambda option: option in FUNCTIONS or f'"{camel(option)}"' in text_of("docs/reference/openapi.json"),
    ),
)


def test_every_option_is_known_in_every_place() -> None:
    check_places("option", OPTIONS, PLACES)


def test_exceptions_are_still_exceptions() -> None:
    assert set(OPTIONS) >= WITHOUT_RANGE | set(WITHOUT_FLAG) | FUNCTIONS
    assert FLAGS.isdisjoint(WITHOUT_FLAG)


def test_recipe_names_the_places() -> None:
    assert paths_on_page("option") == [place.path for place in PLACES]
