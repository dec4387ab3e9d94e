"""What the command lines of the family have in common."""

from collections.abc import Collection, Mapping, Sequence

from agent_mux.options import Attachment, RunOptions

_IMAGES: Mapping[str, str] = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
UNSUPPORTED_OPTIONS = ("max_output_tokens", "max_tokens")


def needs_rpc(options: RunOptions) -> bool:
    """Whether somebody may have to answer, or more is to be said than the first prompt."""
    inline = any(attachment.file_path is None for attachment in options.attachments)
    callbacks = options.on_approval_request is not None or options.on_input_required is not None
    return options.approval_mode != "yolo" or options.interactive or callbacks or inline


def requires_approval(options: RunOptions) -> bool:
    """Tools wait for permission."""
    return options.approval_mode != "yolo" or options.on_approval_request is not None


def prompt_of(options: RunOptions, *, except_for: Collection[str] = ()) -> str:
    """The prompt of rpc mode, which takes no files: attached ones are mentioned, for the agent to read.

    `but`: files that go another way.
    """
    paths = [attachment.file_path for attachment in options.attachments if attachment.file_path is not None]
    mentions = "\n".join(f"Attached file: {path}" for path in paths if path not in except_for)
    return "\n\n".join(part for part in (options.prompt_text, mentions) if part)


def image_files(options: RunOptions) -> dict[str, str]:
    """Attached images: path -> MIME type."""
    kinds = {a.file_path: _kind_of(a.file_path, a.mime_type) for a in options.attachments if a.file_path is not None}
    return {path: kind for path, kind in kinds.items() if kind}


def attachment_flags(options: RunOptions) -> list[str]:
    """The files of json mode: `@path` puts a text or an image before the prompt."""
    return [f"@{attachment.file_path}" for attachment in options.attachments if attachment.file_path is not None]


def images_of(options: RunOptions) -> tuple[str, ...]:
    """Inline images as `data:` URLs, the way the codec sends them."""
    return tuple(f"data:{a.mime_type};base64,{a.base64}" for a in options.attachments if _is_inline_image(a))


def count_unsent(attachments: Sequence[Attachment]) -> int:
    """How many attachments the agent cannot take: it fetches no URLs, and inline it takes images only."""
    return sum(a.file_path is None and not _is_inline_image(a) for a in attachments)


def _is_inline_image(attachment: Attachment) -> bool:
    return attachment.base64 is not None and (attachment.mime_type or "").startswith("image/")


def _kind_of(path: str, mime_type: str | None) -> str:
    if mime_type is not None:
        return mime_type if mime_type.startswith("image/") else ""
    return _IMAGES.get(path.lower().rpartition(".")[2], "")
