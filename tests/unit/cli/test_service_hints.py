"""Next steps in errors of a service name commands that reach the service."""

import pytest

from agent_mux.cli.command_output import Invocation, ServiceEndpoint
from agent_mux.cli.service_hints import at_service, report_error_of
from agent_mux.errors import AgentMuxError

URL = "http://there:8642"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see `amux runs list`", f"see `amux runs list --server {URL}`"),
        ("see `amux runs list --server URL`", f"see `amux runs list --server {URL}`"),
        (
            "`amux run AGENT PROMPT` and `amux models show x`",
            f"`amux run AGENT PROMPT --server {URL}` and `amux models show x --server {URL}`",
        ),
        (f"`amux runs abort 01 --server {URL}`", f"`amux runs abort 01 --server {URL}`"),
        ("`amux models refresh pi` updates", "`amux models refresh pi` (on the machine of the service) updates"),
        ("`amux serve --root DIRECTORY`, `amux tokens create`", "`amux serve --root DIRECTORY`, `amux tokens create`"),
        ("see `amux runs list --help`", "see `amux runs list --help`"),
        ("`amux`, `amux fly`, amux runs list", "`amux`, `amux fly`, amux runs list"),
    ],
)
def test_commands_in_a_text_are_addressed_to_the_service(text: str, expected: str) -> None:
    assert at_service(text, URL) == expected


@pytest.mark.parametrize("as_json", [False, True])
def test_error_and_hint_are_addressed_to_the_service(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    invocation = Invocation(json=as_json, service=ServiceEndpoint(URL))
    report_error_of(AgentMuxError("PROFILE_NOT_FOUND", "no such profile; see `amux profiles list`"), invocation)
    text = "".join(capsys.readouterr())
    assert text.count(f"`amux profiles list --server {URL}`") == (1 if as_json else 2)
    report_error_of(AgentMuxError("PROFILE_NOT_FOUND", "no such profile; see `amux profiles list`"), Invocation())
    assert "--server" not in capsys.readouterr().err
