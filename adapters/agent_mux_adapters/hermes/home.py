"""What Hermes Agent keeps on a machine besides its sessions."""

from agent_mux.home import AgentHome
from agent_mux_adapters.hermes.hooks import HOOKS

HOME = AgentHome(hooks=HOOKS)
