"""Run options to the command line of cursor-agent, by the documented flags of 2026.01.28.

`--print` decides about tools by itself: with `--force` it allows everything that the user's rules do not deny, without
it only what they allow. It reads the prompt from stdin.
"""

from collections.abc import Iterator, Mapping

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters.cursor.codec import STREAM_JSON

OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("--print", "-p", "--output-format", "--stream-partial-output"), "agent-mux reads its output"),
    **dict.fromkeys(("--force", "-f", "--yolo"), "use the option `approval_mode`"),
    **dict.fromkeys(("--resume", "--continue"), "use the option `session_id`"),
    **dict.fromkeys(("--model", "-m"), "use the option `model`"),
}
"""Flags that `extra_args` may not have, and what to use instead."""
NO_KNOB = ("temperature", "top_p", "top_k")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line and notes for these options."""
    return SpawnArgs(
        argv=(environment.executable, "--print", f"--output-format={STREAM_JSON}", *_flags(options)),
        protocol=STREAM_JSON,
        stdin_text=prompt_of(options),
        counts_turns=False,
        notes=tuple(_notes(options)),
    )


def prompt_of(options: RunOptions) -> str:
    """Return the prompt.

    The system prompt, for which there is no flag, is put before it; attached files are mentioned, and the agent reads
    them.
    """
    files = [f"Attached file: {a.file_path}" for a in options.attachments if a.file_path is not None]
    parts = (options.system_prompt, options.prompt_text, "\n".join(files))
    return "\n\n".join(part for part in parts if part)


def _flags(options: RunOptions) -> Iterator[str]:
    if options.stream is not False:
        yield "--stream-partial-output"
    if options.approval_mode == "yolo":
        yield "--force"
    if options.session_id is not None:
        yield f"--resume={options.session_id}"
    if options.model is not None:
        yield f"--model={options.model}"


def _notes(options: RunOptions) -> Iterator[str]:
    for name in NO_KNOB:
        if getattr(options, name) is not None:
            yield f"cursor has no setting for {name}; it was ignored."
    if options.output_limit is not None:
        yield "cursor has no setting for max_output_tokens; it was ignored."
    if options.no_session:
        yield "cursor keeps every session; no_session was ignored."
    if options.system_prompt is not None:
        yield "cursor takes no system prompt; it was put before the prompt."
    if options.on_input_required is not None:
        yield "cursor cannot ask in print mode; its questions are skipped."
    if options.on_approval_request is not None:
        yield "cursor cannot ask in print mode; on_approval_request is never called."
    unsent = sum(attachment.file_path is None for attachment in options.attachments)
    if unsent:
        yield f"{unsent} of the attachments were left out: cursor takes files by path."
