"""Hooks into the events of a run, and wrappers around its model and tool calls."""

from agent_loop.hooks.contexts import HOOKS, HookContext
from agent_loop.hooks.registry import Chain, Handler, Hooks, Middleware, ModelCall, ToolRun

__all__ = ["HOOKS", "Chain", "Handler", "HookContext", "Hooks", "Middleware", "ModelCall", "ToolRun"]
