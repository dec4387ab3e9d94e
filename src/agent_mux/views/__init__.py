"""Runs as cards: what a person sees of a run, derived from its events alone.

A `Timeline` consumes events and returns the cards that each one changed. It performs no I/O and has no clock, so that a
live run, a replay and a run of a service look the same. Renderers (a terminal, a dashboard) draw the cards. See
docs/how-to/show-runs.md.
"""

from agent_mux.views.bounded_text import BoundedText
from agent_mux.views.cards import (
    AnyCard,
    ApprovalCard,
    Card,
    CostCard,
    ErrorCard,
    FileChange,
    MessageCard,
    NoticeCard,
    QuestionCard,
    StatusCard,
    SubagentCard,
    ThinkingCard,
    ToolCard,
    card_to_dict,
)
from agent_mux.views.timeline import Timeline, cards_of

__all__ = [
    "AnyCard",
    "ApprovalCard",
    "BoundedText",
    "Card",
    "CostCard",
    "ErrorCard",
    "FileChange",
    "MessageCard",
    "NoticeCard",
    "QuestionCard",
    "StatusCard",
    "SubagentCard",
    "ThinkingCard",
    "Timeline",
    "ToolCard",
    "card_to_dict",
    "cards_of",
]
