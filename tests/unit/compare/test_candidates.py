from pathlib import Path
from typing import Any

import pytest

from agent_mux.compare.candidates import Candidate, make_candidate, parse_candidate, unique_candidates
from agent_mux.errors import ValidationError


@pytest.mark.parametrize(
    ("text", "name", "options", "trials"),
    [
        ("claude", "claude", {"agent": "claude"}, None),
        ("codex:gpt-5.2", "codex-gpt-5.2", {"agent": "codex", "model": "gpt-5.2"}, None),
        ("pi:openai/gpt-5", "pi-openai-gpt-5", {"agent": "pi", "model": "openai/gpt-5"}, None),
        ("gemini,trials=3,name=fast", "fast", {"agent": "gemini"}, 3),
        ("claude,profile=work", "claude-work", {"agent": "claude", "profile": "work"}, None),
        ("claude,max-model-calls=5", "claude", {"agent": "claude", "max_model_calls": 5}, None),
        (
            'claude,allowed_tools=["Read", "Edit"]',
            "claude",
            {"agent": "claude", "allowed_tools": ["Read", "Edit"]},
            None,
        ),
        ("claude,model=4", "claude-4", {"agent": "claude", "model": "4"}, None),
    ],
)
def test_words_of_a_candidate(text: str, name: str, options: dict[str, Any], trials: int | None) -> None:
    assert parse_candidate(text) == Candidate(name=name, options=options, trials=trials)


def test_built_in_candidates() -> None:
    assert parse_candidate("null").kind == "null"
    assert parse_candidate("null,trials=2").trials == 2
    assert parse_candidate("oracle:fixes/a.patch") == Candidate(
        name="oracle", kind="oracle", patch=Path("fixes/a.patch")
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "AGENT"),
        (":opus", "AGENT"),
        ("claude,fast", "OPTION=VALUE instead of 'fast'"),
        ("claude,trials=0", "from 1 to 1000"),
        ("claude,trials=many", "from 1 to 1000"),
        ("claude,name=a/b", "letters, digits"),
        ("claude,name=../x", "letters, digits"),
        ("claude,modle=opus", "did you mean 'model'"),
        ("claude,cwd=/tmp", "the comparison sets it"),
        ("null,model=opus", "name or trials for null"),
        ("oracle", "the file of the patch"),
    ],
)
def test_candidate_that_is_none_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        parse_candidate(text)


def test_candidates_need_different_names() -> None:
    with pytest.raises(ValidationError, match="name=NAME"):
        unique_candidates([parse_candidate("claude"), parse_candidate("claude")])
    with pytest.raises(ValidationError, match="1 to 100"):
        unique_candidates([])


def test_candidate_survives_its_record() -> None:
    given = parse_candidate("codex:gpt-5.2,trials=3,max_cost_usd=0.5")
    record = given.record(1)
    known = {"agent": record.agent, "model": record.model, "profile": record.profile}
    assert make_candidate({**record.options, **known, "name": record.name, "trials": record.trials}) == given


def test_record_has_no_environment() -> None:
    assert make_candidate({"agent": "claude", "env": {"TOKEN": "secret"}}).record(1).options == {}
