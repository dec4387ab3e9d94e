"""Run options to command-line flags and prompts: the part that the agents of this dialect share."""

from collections.abc import Collection, Mapping, Sequence

from agent_mux.sdk.options import Attachment, RunOptions

_IMAGES: Mapping[str, str] = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
UNSUPPORTED_OPTIONS = ("max_output_tokens", "max_tokens")


THINKING_KEYS = ("level",)
"""Keys of `thinking_override`: the value of `--thinking`, which has more levels than ours."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("--mode", "--print", "-p"), "agent-mux reads its output"),
    "--model": "use the option `model`",
    "--thinking": "use the options `thinking_effort` and `thinking_override`",
    **dict.fromkeys(("--session", "--session-id", "--resume", "-r", "--continue", "-c"), "use the option `session_id`"),
    "--fork": "use the option `fork_session_id`",
    "--no-session": "use the option `no_session`",
    **dict.fromkeys(("--system-prompt", "--append-system-prompt"), "use the option `system_prompt`"),
    **dict.fromkeys(("--approval-mode", "--auto-approve"), "use the option `approval_mode`"),
    "--add-dir": "use the option `add_dirs`",
    "--config": "use the option `native_options`",
    "--cwd": "use the option `cwd`",
}
"""Flags that `extra_args` may not have, and what to use instead."""
REPEATABLE_FLAGS = frozenset({"--extension", "-e"})


def needs_rpc(options: RunOptions) -> bool:
    """Return whether the run needs rpc mode: approvals, questions, further prompts or inline images are possible."""
    inline = any(attachment.file_path is None for attachment in options.attachments)
    callbacks = options.on_approval_request is not None or options.on_input_required is not None
    return options.approval_mode != "yolo" or options.interactive or callbacks or inline


def requires_approval(options: RunOptions) -> bool:
    """Return whether tools wait for permission."""
    return options.approval_mode != "yolo" or options.on_approval_request is not None


def prompt_of(options: RunOptions, *, except_for: Collection[str] = ()) -> str:
    """Return the prompt for rpc mode, which takes no files: it mentions the paths of attachments.

    Attachments in `except_for` are passed in another way and not mentioned.
    """
    paths = [attachment.file_path for attachment in options.attachments if attachment.file_path is not None]
    mentions = "\n".join(f"Attached file: {path}" for path in paths if path not in except_for)
    return "\n\n".join(part for part in (options.prompt_text, mentions) if part)


def image_files(options: RunOptions) -> dict[str, str]:
    """Return the attached image files: path -> MIME type."""
    kinds = {a.file_path: _kind_of(a.file_path, a.mime_type) for a in options.attachments if a.file_path is not None}
    return {path: kind for path, kind in kinds.items() if kind}


def attachment_flags(options: RunOptions) -> list[str]:
    """Return the arguments for the attachments in json mode: `@path` inserts a text or an image before the prompt."""
    return [f"@{attachment.file_path}" for attachment in options.attachments if attachment.file_path is not None]


def images_of(options: RunOptions) -> tuple[str, ...]:
    """Return the inline images as `data:` URLs, which the codec converts to native images."""
    return tuple(f"data:{a.mime_type};base64,{a.base64}" for a in options.attachments if _is_inline_image(a))


def count_unsent(attachments: Sequence[Attachment]) -> int:
    """Count the attachments that the agent cannot take: URLs, and inline data other than images."""
    return sum(a.file_path is None and not _is_inline_image(a) for a in attachments)


def _is_inline_image(attachment: Attachment) -> bool:
    return attachment.base64 is not None and (attachment.mime_type or "").startswith("image/")


def _kind_of(path: str, mime_type: str | None) -> str:
    if mime_type is not None:
        return mime_type if mime_type.startswith("image/") else ""
    return _IMAGES.get(path.lower().rpartition(".")[2], "")
