"""The scenes in which the embedded agent is recorded."""

import base64
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.harness import LiveAgent, wait_for_event

from agent_mux import Approve, Attachment, Deny, RunHandle, Text
from agent_mux.process.marker import processes_of
from agent_mux_testing.live import Ask, Edit, Read, Say, Shell, StructuredAnswer, Think, Todo, Write
from agent_mux_testing.model_server import ScriptStep
from agent_mux_testing.model_server.script import ToolUse

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""
UNTIL_GO = "touch started; while [ ! -e go ]; do sleep 0.05; done"
Steps = tuple[ScriptStep, ...]


async def wait_for_end(_live: LiveAgent, run: RunHandle) -> None:
    """Wait until the run ends by itself."""
    await run


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One recording: the answers of the model, the options of the run, and the actions during it."""

    note: str
    model: Callable[[LiveAgent], tuple[ScriptStep | Steps, ...]]
    options: Callable[[LiveAgent], dict[str, Any]] = lambda _: {}
    prepare: Callable[[LiveAgent], None] = lambda _: None
    drive: Callable[[LiveAgent, RunHandle], Awaitable[None]] = wait_for_end
    before: "Scene | None" = None
    """A scene that runs first, in the same home."""
    resume_option: str = ""
    """The option that receives the session id of `before`: `session_id` or `fork_session_id`."""
    environment: dict[str, str] = field(default_factory=dict)


def asking(**more: Any) -> Callable[[LiveAgent], dict[str, Any]]:
    return lambda _: {"approval_mode": "prompt", **more}


def discard(_: Any) -> None:
    """Discard the value of a call, in lambdas that return None."""


def with_options(**more: Any) -> Callable[[LiveAgent], dict[str, Any]]:
    return lambda _: more


async def two_prompts(_live: LiveAgent, run: RunHandle) -> None:
    await run.continue_("and again")
    await wait_for_event(run, "turn_end", 2)
    await run.close()


async def interrupt(live: LiveAgent, run: RunHandle) -> None:
    await wait_for_event(run, "text_delta")
    await run.interrupt()
    await run


async def interrupt_then_send(live: LiveAgent, run: RunHandle) -> None:
    await live.wait_for_file("started")
    await run.interrupt()
    await wait_for_event(run, "turn_end")
    await run.send("go on")
    await wait_for_event(run, "turn_end", 2)
    await run.close()


async def steer(live: LiveAgent, run: RunHandle) -> None:
    await live.wait_for_file("started")
    await run.steer("and be quick")
    live.file("go").touch()
    await wait_for_event(run, "turn_end")
    await run.close()


async def queue(live: LiveAgent, run: RunHandle) -> None:
    await live.wait_for_file("started")
    await run.queue("second question")
    live.file("go").touch()
    await wait_for_event(run, "turn_end", 2)
    await run.close()


async def abort(live: LiveAgent, run: RunHandle) -> None:
    await live.wait_for_file("started")
    await run.abort()


def send_signal(number: signal.Signals) -> Callable[[LiveAgent, RunHandle], Awaitable[None]]:
    async def send(live: LiveAgent, run: RunHandle) -> None:
        await live.wait_for_file("started")
        agent = min(processes_of(run.run_id))  # it started the others
        os.kill(agent, number)
        await run

    return send


def with_skill_and_document(live: LiveAgent) -> None:
    skill = live.file(".agents/skills/singing")
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: singing\ndescription: Knows how the quokka sings\n---\nSing.\n", "utf-8"
    )
    live.file("AGENTS.md").write_text("Never wake the wombat.\n", "utf-8")


def with_skill(live: LiveAgent) -> None:
    """Write a skill of the project with a file to read and a script."""
    skill = live.file(".claude/skills/singing")
    skill.mkdir(parents=True)
    head = "---\nname: singing\ndescription: Knows how the quokka sings\n---\n"
    (skill / "SKILL.md").write_text(f"{head}Sing with sing.sh.\n", "utf-8")
    (skill / "notes.md").write_text("Do re mi.\n", "utf-8")
    (skill / "sing.sh").write_text('echo "$1, sings the quokka"\n', "utf-8")


def with_picture(live: LiveAgent) -> dict[str, Any]:
    picture = live.file("dot.png")
    picture.write_bytes(base64.b64decode(DOT))
    return {"attachments": [Attachment(file_path=str(picture))]}


def texts(live: LiveAgent, *answers: str) -> tuple[ScriptStep, ...]:
    return tuple(live.answer(Say(answer)) for answer in answers)


def calls(live: LiveAgent, *parts: Any, last: str = "Done.") -> tuple[ScriptStep, ...]:
    return (*(live.answer(part) for part in parts), live.answer(Say(last)))


def raw(*blocks: Any) -> ScriptStep:
    return ScriptStep(blocks=blocks)


SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
INTERACTIVE = {"interactive": True, "approval_mode": "yolo"}
REMEMBER = Scene(note="", model=lambda live: texts(live, "It is 17."))
SCENES: dict[str, Scene] = {
    "text": Scene(note="one answer", model=lambda live: texts(live, "Hello from the script.")),
    "unicode": Scene(note="letters of all kinds", model=lambda live: texts(live, 'naïve — 日本 \u2028 😀 \\ " end')),
    "thinking": Scene(
        note="a thought, then the answer", model=lambda live: (live.answer(Think("Let me think."), Say("42")),)
    ),
    "shell": Scene(
        note="a command that succeeds",
        model=lambda live: (live.answer(Say("Looking."), Shell("echo out; touch made")), *texts(live, "Done.")),
    ),
    "shell_failure": Scene(
        note="a command that exits with 3 and prints to both streams",
        model=lambda live: calls(live, Shell("echo out; sleep 0.3; echo err >&2; exit 3")),
    ),
    "shell_stream": Scene(
        note="a command with output in several chunks",
        model=lambda live: calls(live, Shell("for i in 1 2 3; do echo line $i; sleep 0.3; done")),
    ),
    "background": Scene(
        note="a directory that holds, and a background command",
        model=lambda live: (
            live.answer(Shell("mkdir sub && cd sub")),
            raw(ToolUse("shell", {"command": "pwd | sed 's,.*/,,'; echo up; sleep 300", "background": True})),
            raw(ToolUse("shell_output", {"id": "bg1", "wait": 30})),
            raw(ToolUse("shell_stop", {"id": "bg1"})),
            *texts(live, "Done."),
        ),
    ),
    "files": Scene(
        note="a file is created, read, edited and overwritten",
        model=lambda live: calls(
            live, Write("a.txt", "one\ntwo\nthrée\n"), Read("a.txt"), Edit("a.txt", "two", "TWO"), Write("a.txt", "x\n")
        ),
    ),
    "file_errors": Scene(
        note="a missing file, a file outside of the workspace, an edit without a match",
        prepare=lambda live: discard(live.file("a.txt").write_text("one\n")),
        model=lambda live: calls(live, Read("none.txt"), Read("../../secret.txt"), Edit("a.txt", "two", "TWO")),
    ),
    "parallel_tools": Scene(
        note="two commands in one answer",
        model=lambda live: (live.answer(Shell("echo one"), Shell("sleep 0.3; echo two")), *texts(live, "Both done.")),
    ),
    "todos": Scene(note="a list of tasks", model=lambda live: calls(live, Todo(("look", "change")))),
    "unknown_tool": Scene(
        note="an unknown tool",
        model=lambda live: (raw(ToolUse("no_such_tool", {"a": 1})), *texts(live, "There is none.")),
    ),
    "bad_arguments": Scene(
        note="arguments that are not JSON, and a missing argument",
        model=lambda live: (
            raw(ToolUse("shell", raw_input='{"command": "ec')), raw(ToolUse("read_file", {})), *texts(live, "Done."),
        ),
    ),
    "approve": Scene(
        note="an approval is requested and granted",
        model=lambda live: calls(live, Shell("touch made")),
        options=asking(on_approval_request=lambda _: Approve()),
    ),
    "approve_always": Scene(
        note="one approval for two identical commands",
        model=lambda live: calls(live, Shell("touch made"), Shell("touch made")),
        options=asking(on_approval_request=lambda _: Approve(always=True)),
    ),
    "approve_file_change": Scene(
        note="approval of a file change",
        model=lambda live: calls(live, Write("a.txt", "one\n")),
        options=asking(on_approval_request=lambda _: Approve()),
    ),
    "deny": Scene(
        note="an approval is denied with a reason",
        model=lambda live: calls(live, Shell("touch made"), last="As you like."),
        options=asking(on_approval_request=lambda _: Deny("not in my house")),
    ),
    "mode_deny": Scene(
        note="every change is denied",
        model=lambda live: calls(live, Shell("touch made"), last="As you like."),
        options=with_options(approval_mode="deny"),
    ),
    "question": Scene(
        note="a question with options, answered",
        model=lambda live: calls(live, Ask("Which one?", ("red", "green")), last="Green, then."),
        options=asking(on_input_required=lambda _: Text("green")),
    ),
    "question_declined": Scene(
        note="a question that is declined",
        model=lambda live: calls(live, Ask("Which one?", ("red", "green")), last="Then not."),
        options=asking(on_input_required=lambda _: Deny("no idea")),
    ),
    "multi_turn": Scene(
        note="two prompts in one run",
        model=lambda live: texts(live, "First answer.", "Second answer."),
        options=with_options(**INTERACTIVE),
        drive=two_prompts,
    ),
    "steer": Scene(
        note="a message for the current turn",
        model=lambda live: calls(live, Shell(UNTIL_GO)),
        options=with_options(**INTERACTIVE),
        drive=steer,
    ),
    "queue": Scene(
        note="a prompt for a separate turn",
        model=lambda live: (*calls(live, Shell(UNTIL_GO), last="First answer."), *texts(live, "Second answer.")),
        options=with_options(**INTERACTIVE),
        drive=queue,
    ),
    "interrupt_text": Scene(
        note="interrupted while the model streams text",
        model=lambda live: (live.answer(Say("A long text that hangs here."), hang=True),),
        drive=interrupt,
    ),
    "interrupt_then_continue": Scene(
        note="interrupted in a command; the next prompt is answered",
        model=lambda live: (live.answer(Shell("touch started; sleep 300")), *texts(live, "Here again.")),
        options=with_options(**INTERACTIVE),
        drive=interrupt_then_send,
    ),
    "abort_tool": Scene(
        note="aborted in a command",
        model=lambda live: (live.answer(Say("Working."), Shell("touch started; sleep 300")),),
        drive=abort,
    ),
    "sigint": Scene(
        note="SIGINT in a command",
        model=lambda live: (live.answer(Shell("touch started; sleep 300")),),
        drive=send_signal(signal.SIGINT),
    ),
    "sigterm": Scene(
        note="SIGTERM in a command",
        model=lambda live: (live.answer(Shell("touch started; sleep 300")),),
        drive=send_signal(signal.SIGTERM),
    ),
    "sigkill": Scene(
        note="SIGKILL in a command",
        model=lambda live: (live.answer(Shell("touch started; sleep 300")),),
        drive=send_signal(signal.SIGKILL),
    ),
    "resume": Scene(
        note="another run resumes the session",
        before=REMEMBER,
        resume_option="session_id",
        model=lambda live: texts(live, "Still 17."),
    ),
    "fork": Scene(
        note="a new session with the history of another",
        before=REMEMBER,
        resume_option="fork_session_id",
        model=lambda live: texts(live, "A copy."),
    ),
    "resume_missing": Scene(
        note="a missing session",
        model=lambda live: texts(live, "Never said."),
        options=with_options(session_id="0" * 32),
    ),
    "no_session": Scene(
        note="nothing is stored", model=lambda live: texts(live, "Forgotten."), options=with_options(no_session=True)
    ),
    "output_schema": Scene(
        note="an answer by a schema",
        model=lambda live: (live.answer(StructuredAnswer({"answer": 42})),),
        options=with_options(output_schema=SCHEMA),
    ),
    "output_schema_asked_for": Scene(
        note="an answer that does not match the schema: it is requested with a hidden tool",
        model=lambda live: (*texts(live, "It is 42."), raw(ToolUse("__output__", {"answer": 42}))),
        options=with_options(output_schema=SCHEMA),
    ),
    "image": Scene(note="a picture", model=lambda live: texts(live, "A dot."), options=with_picture),
    "skill_and_document": Scene(
        note="a project with AGENTS.md and a skill", prepare=with_skill_and_document,
        model=lambda live: texts(live, "Sung."),
        options=with_options(native_options={"trustProjectSkills": True}),
    ),
    "skill_script": Scene(
        note="a skill of a trusted project is activated, and its script runs", prepare=with_skill,
        model=lambda live: (
            raw(ToolUse("skills_use", {"name": "singing"})),
            raw(ToolUse("skills_run_script", {"name": "singing", "path": "sing.sh", "args": ["la la"]})),
            *texts(live, "Sung."),
        ),
        options=with_options(native_options={"trustProjectSkills": True}),
    ),
    "max_turns": Scene(
        note="a limit of one model call",
        model=lambda live: calls(live, Shell("touch one"), Shell("touch two")),
        options=with_options(max_turns=1),
    ),
    "budget_cost": Scene(
        note="a budget in dollars",
        model=lambda live: calls(live, Shell("touch one"), Shell("touch two")),
        options=with_options(max_cost_usd=0.00001),
    ),
    "compaction": Scene(
        note="the provider rejects the context as too long; it is compacted, and the call is repeated",
        model=lambda live: (
            live.answer(Shell("seq 1 2000")), live.answer(Shell("seq 1 2000")), live.refusal("context_exceeded"),
            *texts(live, "Done."),
        ),
    ),
    "err_401": Scene(note="a wrong key", model=lambda live: (live.refusal("unauthorized", repeat=True),)),
    "err_403": Scene(note="refused", model=lambda live: (live.refusal("refused", repeat=True),)),
    "err_429_recover": Scene(
        note="too many requests, once", model=lambda live: (live.refusal("rate_limited"), *texts(live, "Recovered."))
    ),
    "err_429_final": Scene(
        note="too many requests, always", model=lambda live: (live.refusal("rate_limited", repeat=True),)
    ),
    "err_500_final": Scene(
        note="the provider is broken", model=lambda live: (live.refusal("server_error", repeat=True),)
    ),
    "err_context": Scene(
        note="the context is too long", model=lambda live: (live.refusal("context_exceeded", repeat=True),)
    ),
    "err_drop": Scene(
        note="the stream breaks off, and the call is repeated",
        model=lambda live: (
            live.answer(Say("partial text that will be cut"), drop=True, delay=0.1), *texts(live, "Whole now."),
        ),
    ),
    "err_after_tool": Scene(
        note="the provider fails after a command",
        model=lambda live: (
            live.answer(Say("Working."), Shell("touch made")), live.refusal("server_error", repeat=True),
        ),
    ),
    "err_then_next_turn": Scene(
        note="a turn fails, the next one succeeds",
        model=lambda live: (live.refusal("refused"), *texts(live, "Fine now.")),
        options=with_options(**INTERACTIVE),
        drive=two_prompts,
    ),
    "no_key": Scene(
        note="a missing key", model=lambda live: texts(live, "Never said."), environment={"OPENAI_API_KEY": ""}
    ),
    "no_such_provider": Scene(
        note="an unknown provider", model=lambda live: texts(live, "Never said."),
        options=with_options(model="nobody:x"),
    ),
    "wire_anthropic": Scene(
        note="the Messages API of Anthropic",
        model=lambda live: (live.answer(Think("Hm."), Shell("echo hi")), *texts(live, "Done.")),
        options=with_options(model="anthropic:claude-sonnet-4-5", thinking_effort="low"),
        environment={"ANTHROPIC_API_KEY": "sk-dummy", "ANTHROPIC_BASE_URL": "{url}"},
    ),
    "wire_gemini": Scene(
        note="Gemini's generateContent",
        model=lambda live: (live.answer(Shell("echo hi")), *texts(live, "Done.")),
        options=with_options(model="google:gemini-2.5-flash"),
        environment={"GEMINI_API_KEY": "sk-dummy", "GOOGLE_GEMINI_BASE_URL": "{url}"},
    ),
}  # fmt: skip
