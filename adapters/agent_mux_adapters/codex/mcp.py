"""MCP servers of one run: `mcp_servers.*` on the command line, with every secret in the environment.

Codex hands a server only those of its own variables that `env_vars` names, under the same name. A value that would
collide with a variable Codex itself sees travels under a name of ours, and a shell puts it back.
"""

from collections.abc import Mapping, Sequence

from agent_mux.errors import FieldError, ValidationError
from agent_mux.options import ENV_NAME, McpServer
from agent_mux_adapters.codex.toml import toml_list, toml_string, toml_table

_OF_CODEX = ("CODEX_", "OPENAI_")
_SHELL = "/bin/sh"


def mcp_config(
    servers: Sequence[McpServer], environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    """`key=value` settings, the variables that carry the secrets, and notes about what may not work."""
    config: list[str] = []
    carried: dict[str, str] = {}
    notes: list[str] = []
    for index, server in enumerate(servers):
        add = _stdio if server.transport == "stdio" else _http
        config += [f"mcp_servers.{server.name}.{setting}" for setting in add(index, server, environ, carried)]
        if server.transport == "sse":
            notes.append(f"codex has no SSE transport: the MCP server {server.name} is tried over streamable HTTP")
    return config, carried, tuple(notes)


def _stdio(index: int, server: McpServer, environ: Mapping[str, str], carried: dict[str, str]) -> list[str]:
    wrong = [name for name in server.env if ENV_NAME.fullmatch(name) is None]
    if wrong:
        allowed = "names of letters, digits and underscores"
        raise ValidationError([FieldError(f"mcp_servers[{index}].env", wrong, allowed)])
    visible = {name: value for name, value in server.env.items() if _is_free(name, value, {**environ, **carried})}
    hidden = {name: value for name, value in server.env.items() if name not in visible}
    ours = {name: f"AMUX_MCP_{index}_{name}" for name in hidden}
    carried |= visible | {ours[name]: value for name, value in hidden.items()}
    command, args = server.command or "", list(server.args)
    if ours:
        script = "; ".join(f'export {name}="${alias}"; unset {alias}' for name, alias in ours.items())
        command, args = _SHELL, ["-c", f'{script}; exec "$0" "$@"', command, *args]
    names = [*visible, *ours.values()]
    return [
        f"command={toml_string(command)}",
        f"args={toml_list(args)}",
        *([f"env_vars={toml_list(names)}"] if names else []),
    ]


def _http(index: int, server: McpServer, _: Mapping[str, str], carried: dict[str, str]) -> list[str]:
    aliases = {header: f"AMUX_MCP_{index}_HEADER_{number}" for number, header in enumerate(server.headers)}
    carried |= {aliases[header]: value for header, value in server.headers.items()}
    headers = [f"env_http_headers={toml_table(aliases)}"] if aliases else []
    return [f"url={toml_string(server.url or '')}", *headers]


def _is_free(name: str, value: str, taken: Mapping[str, str]) -> bool:
    return taken.get(name, value) == value and (name in taken or not name.startswith(_OF_CODEX))
