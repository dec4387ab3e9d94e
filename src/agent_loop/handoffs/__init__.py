"""Handoffs: a tool by which the model passes the conversation to another agent, which continues it."""

from agent_loop.handoffs.roster import Handoff, HandoffLike, HandoffTarget, HistoryFilter, Roster
from agent_loop.handoffs.tool import TransferTool

__all__ = ["Handoff", "HandoffLike", "HandoffTarget", "HistoryFilter", "Roster", "TransferTool"]
