"""Prompts for approvals and questions on a terminal, and the parsing of typed answers."""

from agent_mux.cli.terminal import Palette, one_line, sanitize
from agent_mux.sdk.interactions import (
    ApprovalDetail,
    Approve,
    Choice,
    Deny,
    InputDetail,
    PendingInteraction,
    Response,
    Text,
)

INTERACTION_EVENTS = frozenset({"approval_request", "input_required"})
"""The types of the events that request an answer."""
DECLINED = Deny("declined at the terminal")


def describe_request(pending: PendingInteraction, palette: Palette) -> str:
    """Describe a request in full, sanitized, as whole lines."""
    match pending.detail:
        case ApprovalDetail() as detail:
            head = palette.warning(f"permission needed ({detail.risk_level} risk): ") + one_line(detail.action, 500)
            return head + "\n" + _indent(detail.detail)
        case InputDetail() as detail:
            numbered = "".join(
                f"  {number}. {one_line(option, 500)}\n" for number, option in enumerate(detail.options, start=1)
            )
            context = _indent(detail.context) if detail.context else ""
            return palette.warning("question: ") + sanitize(detail.question) + "\n" + context + numbered


def prompt_for(pending: PendingInteraction) -> str:
    """Return the prompt in front of the answer."""
    return "[y]es / [n]o / [a]lways? " if pending.type == "approval" else "> "


def parse_answer(pending: PendingInteraction, line: str) -> Response | None:
    """Parse a typed answer; None if it is not a valid one."""
    line = line.strip()
    match pending.detail:
        case ApprovalDetail():
            return _parse_approval(line)
        case InputDetail() as detail:
            return _parse_input(line, len(detail.options))


def _parse_approval(answer: str) -> Response | None:
    word, _, reason = answer.partition(" ")
    match word.lower():
        case "y" | "yes":
            return Approve()
        case "a" | "always":
            return Approve(always=True)
        case "n" | "no":
            return Deny(reason.strip() or None)
    return None


def _parse_input(answer: str, options: int) -> Response | None:
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= options:
        return Choice(int(answer) - 1)
    return Text(answer) if answer else None


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in sanitize(text).split("\n") if line)
