"""Stored sessions are rewound by their agents: the conversation, the files that the agent edited, or both."""

import json
from typing import Any

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.terminal import CommandOutput, amux
from tests.e2e.ways import ALL_AGENTS, HEAVY, TWO_WAY

from agent_mux.sdk.session_changes import SessionCommands
from agent_mux_testing.live import Say, Write

pytestmark = pytest.mark.anyio


def data_of(printed: CommandOutput) -> Any:
    assert printed.code == 0, printed
    return json.loads(printed.out)["data"]


@HEAVY
@ALL_AGENTS
async def test_stored_session_is_rewound(live: LiveAgent) -> None:
    """The second of two prompts and its edit are gone, also for the model; agents without rewind are refused."""
    commands = live.adapter.installation().sessions or SessionCommands()
    live.script(
        live.answer(Write("first.txt", "one\n")), live.answer(Say("First answer.")),
        live.answer(Write("second.txt", "two\n")), live.answer(Say("Second answer.")),
    )  # fmt: skip
    first = await live.run("first question", **TWO_WAY)
    session = f"{live.agent}:{first.result.session_id}"
    if commands.rewind is None:
        for words in (("checkpoints", session), ("rewind", session, "any", "--yes")):
            refused = amux(live, "sessions", *words, "--json")
            assert refused.code == 6, refused
            assert "amux sessions fork" in refused.out
        return
    second = await live.run("second question", session_id=first.result.session_id, **TWO_WAY)
    session = f"{live.agent}:{second.result.session_id}"
    points = data_of(amux(live, "sessions", "checkpoints", session, "--json"))
    assert [(point["turn"], point["prompt"]) for point in points] == [(0, "first question"), (1, "second question")]
    rewound = data_of(amux(live, "sessions", "rewind", session, points[1]["id"], "--yes", "--json"))
    assert rewound["isNew"] is commands.rewind_creates_session
    assert rewound["changed"] == commands.scopes[0]
    assert live.file("first.txt").exists()
    assert live.file("second.txt").exists() is (commands.scopes[0] == "conversation")
    found = data_of(amux(live, "sessions", "show", rewound["session"], "--json"))
    assert [one["text"] for one in found["messages"] if one["role"] == "user"] == ["first question"]
    live.script(live.answer(Say("Third answer.")))
    await live.run("third question", session_id=found["summary"]["nativeId"], **TWO_WAY)
    assert live.model.received("first question")
    assert not live.model.received("second question")
