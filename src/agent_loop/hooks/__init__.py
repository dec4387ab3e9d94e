"""Being called when something happens in a run, and going around its calls."""

from agent_loop.hooks.contexts import HOOKS, HookContext
from agent_loop.hooks.registry import Chain, Handler, Hooks, Middleware, ModelCall, ToolRun

__all__ = ["HOOKS", "Chain", "Handler", "HookContext", "Hooks", "Middleware", "ModelCall", "ToolRun"]
