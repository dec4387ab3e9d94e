"""A secret that an agent streams in fragments is in no event, however it is split, and every reader agrees."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.process.scripted import ScriptedCodec
from tests.unit.redaction.key_samples import HARMLESS, KEY_LINES, PRIVATE_KEY, SAMPLES, UP
from tests.unit.run.scripted_run import DONE, STARTED_AT, header

from agent_mux import encode_event
from agent_mux.contract import validate
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Control, Kind, Record, encode
from agent_mux.redaction import RedactedStream, Redactor
from agent_mux.run.normalizer import Normalizer
from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext, CodecOutput, Source

VALUES = ["plain-passw0rd", 'quo"te and \\slash 1', "ünïcödé-passwörd", "spaced passw0rd"]
SECRETS = {**SAMPLES, "private key": PRIVATE_KEY, **{value: value for value in VALUES}}
START = Record(Kind.CONTROL, 0, encode(Control("start")))


class StreamingCodec(ScriptedCodec):
    """A codec that joins the fragments of an input, as codecs of several agents do."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context)
        self._input = ""

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        ((key, value),) = json.loads(line).items()
        if key == "input":
            self._input += value
        if key == "ready":
            value = json.loads(self._input)
        return STEPS[key](value)


def ready(value: Any) -> CodecOutput:
    return facts.ToolReady("call", "Shell", value, facts.ShellInvocation(value["command"]), permitted=True)


STEPS: dict[str, Callable[[Any], Iterable[CodecOutput]]] = {
    "text": lambda value: (facts.TextDelta(value),),
    "thought": lambda value: (facts.ThinkingDelta(value),),
    "whole": lambda value: (facts.TextEnd(), facts.WholeText(value)),
    "begin": lambda _: (facts.ToolBegin("call", "Shell"),),
    "input": lambda value: (facts.ToolInput("call", value),),
    "ready": lambda value: (ready(value),),
    "out": lambda value: (facts.ToolOutput("call", value),),
    "ran": lambda value: (facts.ToolDone("call", value, stdout=value),),
    "began": lambda _: (facts.ToolReady("call", "Shell", {}), facts.CommandBegan("make", "/")),
    "printed": lambda value: (facts.CommandOutput(value),),
    "child": lambda _: (facts.SubagentBegin("child", "child", "help"),),
    "inside": lambda value: (facts.InSubagent("child", facts.TextDelta(value)),),
    "ask": lambda value: (facts.ApprovalRequested("ask", "run", value, "medium", "Shell", "call", command=value),),
    "done": lambda _: (facts.TurnDone(),),
}


def line(key: str, value: Any = True) -> bytes:
    return json.dumps({key: value}).encode() + b"\n"


def lines_of(kind: str, pieces: Sequence[str]) -> list[bytes]:
    text = "".join(pieces)
    streamed = [line(kind, piece) for piece in pieces if piece]
    match kind:
        case "input":
            return [line("begin"), *streamed, line("ready"), line("done")]
        case "out":
            ready = [line("begin"), line("input", '{"command": "make"}'), line("ready")]
            return [*ready, *streamed, line("ran", text), line("done")]
        case "printed":
            return [line("began"), *streamed, line("done")]
        case "inside":
            return [line("child"), *streamed, line("done")]
    return [*streamed, line("done")]


def as_input(text: str) -> str:
    return json.dumps({"command": text})


KINDS: dict[str, Callable[[str], str]] = {
    "text": str, "thought": str, "out": str, "printed": str, "inside": str, "input": as_input,
}  # fmt: skip


def encoded(events: Iterable[AgentEvent]) -> list[bytes]:
    return [encode_event(event) for event in events]


class LiveRun:
    """A run as the recorder has it: the lines are redacted, and masks precede the records they belong to."""

    def __init__(self, redactor: Redactor | None = None, **stream: Any) -> None:
        self.header = header(include_subagent_events=True, **stream)
        self.redactor = redactor or Redactor(VALUES)
        self.normalizer = Normalizer(self.header, StreamingCodec, redactor=self.redactor)
        self.output = RedactedStream(self.redactor)
        self.journal: list[Record] = []
        self.events: list[AgentEvent] = []
        self.feed(START)

    def feed(self, record: Record) -> None:
        self.events += self.normalizer.feed(record)
        masks = self.normalizer.masks.take()
        if masks:
            self.journal.append(Record(Kind.CONTROL, record.at, encode(Control("masks", masks=masks))))
        self.journal.append(record)

    def print(self, *lines: bytes) -> None:
        for one in lines:
            self.feed(Record(Kind.STDOUT, 0, self.output.feed(one)))

    def end(self) -> list[AgentEvent]:
        self.feed(DONE)
        assert encoded(self.derive()) == encoded(self.events)
        assert validate(self.events) == []
        return self.events

    def derive(self, journal: Sequence[Record] | None = None) -> list[AgentEvent]:
        reader = Normalizer(self.header, StreamingCodec)
        return [event for record in journal or self.journal for event in reader.feed(record)]

    def of(self, name: str) -> list[Any]:
        return [event for event in self.events if event.type == name]


def run(kind: str, pieces: Sequence[str], **stream: Any) -> LiveRun:
    live = LiveRun(**stream)
    live.print(*lines_of(kind, pieces))
    live.end()
    return live


def tails(secret: str) -> list[str]:
    shown = KEY_LINES if secret == PRIVATE_KEY else [secret.removesuffix("@example.com/x")]
    return [spelled for one in shown for spelled in (one[-12:], json.dumps(one[-12:])[1:-1])]


def leaks(live: LiveRun, secret: str) -> list[bytes]:
    words = [spelled for tail in tails(secret) for spelled in (tail, json.dumps(tail, ensure_ascii=False)[1:-1])]
    lines = [*encoded(live.events), *(one.payload for one in live.journal if one.kind is Kind.CONTROL)]
    return [one for one in lines if any(word.encode() in one for word in words)]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("kind", KINDS)
def test_streamed_secret_is_in_no_event(kind: str, secret: str) -> None:
    text = KINDS[kind](f"before {secret} after")
    for size in (1, 2, 7, 40):
        live = run(kind, [text[at : at + size] for at in range(0, len(text), size)])
        assert leaks(live, secret) == [], size


@pytest.mark.slow
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("kind", ["text", "input"])
def test_streamed_secret_is_hidden_at_every_split_position(kind: str, secret: str) -> None:
    text = KINDS[kind](f"before {secret} after")
    for cut in range(1, len(text)):
        assert leaks(run(kind, [text[:cut], text[cut:]]), secret) == [], cut


@given(st.sampled_from(list(KINDS)), st.lists(st.sampled_from([*SECRETS.values(), *HARMLESS, "\n", "ü"])), st.data())
def test_streamed_secrets_are_hidden_for_any_fragments(kind: str, parts: list[str], data: st.DataObject) -> None:
    text = KINDS[kind](" ".join(parts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    live = run(kind, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)])
    assert [secret for secret in SECRETS.values() if secret in parts and leaks(live, secret)] == []


@pytest.mark.parametrize("buffered", [False, True])
def test_deltas_accumulated_and_whole_text_agree(buffered: bool) -> None:
    secret = SAMPLES["anthropic"]
    live = run("text", [*f"My key is {secret}."], buffered=buffered)
    deltas = [event.delta for event in live.of("text_delta")]
    (stop,) = live.of("message_stop")
    assert "".join(deltas) == stop.text == str(live.of("text_delta")[-1].accumulated)
    assert stop.text.startswith("My key is sk-ant-*1***")
    assert len(stop.text) == len(f"My key is {secret}.")


def test_ordinary_text_is_not_held_back() -> None:
    text = "The task-runner of /usr/lib reads a file, then prints: done (12 ms)."
    live = LiveRun(Redactor())
    for number, word in enumerate(text.split(" ")):
        live.print(line("text", f"{word} "))
        assert len(live.of("text_delta")) == number + 1
    live.end()


def test_fragment_is_held_back_only_while_it_can_become_a_secret() -> None:
    live = LiveRun()
    live.print(line("text", "see plain-pass"))
    assert [event.delta for event in live.of("text_delta")] == ["see "]
    live.print(line("text", "ive tone"))
    assert [event.delta for event in live.of("text_delta")] == ["see ", "plain-passive tone"]
    live.end()


def test_held_text_is_emitted_before_an_interaction() -> None:
    live = LiveRun()
    live.print(line("text", "may I use plain-pass"), line("ask", "make"))
    types = [event.type for event in live.events]
    assert types.index("approval_request") == len(types) - 1
    assert "".join(event.delta for event in live.of("text_delta")) == "may I use plain-pass"
    live.print(line("text", "w0rd"), line("done"))
    live.end()
    assert leaks(live, "plain-passw0rd") == []


def test_placeholders_of_streamed_secrets_are_restored() -> None:
    secret = SAMPLES["github"]
    for size in (1, 30, 45, 1000):
        text = as_input(f"curl -H {secret} x; echo plain-passw0rd")
        live = run("input", [text[at : at + size] for at in range(0, len(text), size)])
        (ready,) = live.of("tool_call_ready")
        assert secret not in ready.input["command"]
        assert live.redactor.restore(ready.input["command"].encode()).decode() == json.loads(text)["command"]


def test_rest_of_a_secret_whose_line_was_redacted_is_hidden() -> None:
    secret = SAMPLES["anthropic"]
    pieces = [f"key {secret[:60]}", f"{secret[60:]}. Use it."]
    (stop,) = run("text", pieces).of("message_stop")
    assert UP[-30:] not in stop.text
    assert stop.text.endswith("*. Use it.")


def test_secret_longer_than_what_is_held_back_is_hidden() -> None:
    secret = "sk-" + "ant-" + UP * 60
    live = run("text", [f"{secret} end"[at : at + 9] for at in range(0, len(secret) + 4, 9)])
    (stop,) = live.of("message_stop")
    assert UP[:20] not in stop.text
    assert stop.text.endswith("* end")


def test_held_text_of_a_killed_run_is_not_shown() -> None:
    secret = SAMPLES["anthropic"]
    live = LiveRun()
    live.print(*[line("text", character) for character in f"key {secret}"])
    reader = Normalizer(live.header, StreamingCodec)
    events = [event for record in live.journal for event in reader.feed(record)]
    events += reader.cut_off(0)
    assert validate(events) == []
    assert not [one for one in encoded(events) if secret[-12:].encode() in one]
    (stop,) = [event for event in events if event.type == "message_stop"]
    assert stop.text.endswith("***")


def test_masks_without_their_record_change_nothing() -> None:
    live = LiveRun()
    live.print(*[line("text", piece) for piece in ("a plain-", "passw0rd b")])
    torn = live.journal[:-1]
    assert torn[-1].kind is Kind.CONTROL
    reader = Normalizer(live.header, StreamingCodec)
    events = [event for record in torn for event in reader.feed(record)]
    assert [event.delta for event in events if event.type == "text_delta"] == ["a "]


def test_journal_without_masks_is_derived_as_before() -> None:
    records = [START, *(Record(Kind.STDOUT, 0, line("text", piece)) for piece in ("a plain-", "passw0rd b")), DONE]
    reader = Normalizer(header(), StreamingCodec)
    events = [event for record in records for event in reader.feed(record)]
    assert [event.delta for event in events if event.type == "text_delta"] == ["a plain-", "passw0rd b"]
    assert events[0].timestamp == STARTED_AT
