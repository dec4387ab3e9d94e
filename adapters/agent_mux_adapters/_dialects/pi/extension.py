"""The JavaScript extension that agent-mux writes into the run's own directory and loads with `--extension`.

It adds what these agents leave to extensions:

- whether a file existed before `write` wrote it: `details.existedBefore` of the result;
- approvals, where a run asks for them: before a tool runs, the extension opens an input dialog in the client of rpc
  mode. The dialog carries the call as JSON, so that the shown call is the call that runs; the response is JSON, too.
  The extension remembers tools that are allowed for the rest of the session. A dialog that is dismissed, or ended by
  an interruption, blocks the call;
- tools that a run may not use: their calls are blocked. Tools that it may use without asking are not asked about;
- images for the first prompt from files; rpc mode itself takes images only inline;
- MCP servers of the run, in versions of pi with an MCP client. Their tools are declared to the model like its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import write_server

FILE = "agent-mux.ts"
TITLE = "agent-mux: may this tool run?"
UNASKED = ("find", "grep", "ls", "read")
"""Tools that only read: they run without asking."""
DENIED = "denied by the user"
NO_MCP = "this version of pi has no MCP client; mcp_servers and tools need pi 0.99 or newer"

_CODE = """\
// Written by agent-mux for one run.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";

const ASKS = %(asks)s;
const TITLE = %(title)s;
const UNASKED = new Set(%(unasked)s);
const DENIED = %(denied)s;
const DISALLOWED = new Set(%(disallowed)s);
const IMAGES = %(images)s;
const MCP_SERVERS = %(mcp_servers)s;

export default function (pi) {
  if (MCP_SERVERS.length > 0 && !pi.registerMcpServer) throw new Error(%(no_mcp)s);
  for (const { name, config } of MCP_SERVERS) pi.registerMcpServer(name, { ...config, exposure: "direct" });
  const allowed = new Set();
  const existed = new Map();

  async function ask(event, ctx) {
    const call = JSON.stringify({ id: event.toolCallId, name: event.toolName, input: event.input });
    const reply = await ctx.ui.input(TITLE, call, { signal: ctx.signal });
    let answer = {};
    try {
      answer = JSON.parse(reply ?? "{}");
    } catch {
      // No JSON of ours: treated as no answer.
    }
    if (answer.decision === "always") allowed.add(event.toolName);
    if (answer.decision === "allow" || answer.decision === "always") return undefined;
    return { block: true, reason: answer.reason || DENIED };
  }

  pi.on("tool_call", async (event, ctx) => {
    if (DISALLOWED.has(event.toolName)) {
      return { block: true, reason: `this run may not use the tool ${event.toolName}; continue without it` };
    }
    const denied = ASKS && !UNASKED.has(event.toolName) && !allowed.has(event.toolName) && (await ask(event, ctx));
    if (denied) return denied;
    if (event.toolName === "write") {
      const path = String(event.input?.path ?? "").replace(/^@/, "").replace(/^~(?=\\/)/, homedir());
      existed.set(event.toolCallId, existsSync(resolve(ctx.cwd, path)));
    }
    return undefined;
  });

  pi.on("tool_result", (event) => {
    if (!existed.has(event.toolCallId)) return undefined;
    const existedBefore = existed.get(event.toolCallId);
    existed.delete(event.toolCallId);
    return { details: { ...event.details, existedBefore } };
  });

  pi.on("input", (event) => {
    const images = IMAGES.splice(0).map(({ path, mimeType }) => ({
      type: "image",
      mimeType,
      data: readFileSync(path).toString("base64"),
    }));
    if (images.length === 0) return undefined;
    return { action: "transform", text: event.text, images: [...(event.images ?? []), ...images] };
  });
}
"""


def extension_code(  # noqa: PLR0913  # one parameter for each setting of the extension
    *,
    asks: bool,
    asks_everything: bool = False,
    images: Mapping[str, str] | None = None,
    allowed_tools: Sequence[str] = (),
    disallowed_tools: Sequence[str] = (),
    mcp_servers: Sequence[McpServer] = (),
) -> str:
    """Return the code of the extension.

    With `asks_everything`, tools that only read and allowed ones ask as well. `images` maps absolute paths to MIME
    types.
    """
    return _CODE % {
        "asks": json.dumps(asks),
        "title": json.dumps(TITLE),
        "unasked": json.dumps([] if asks_everything else [*UNASKED, *allowed_tools]),
        "disallowed": json.dumps(list(disallowed_tools)),
        "denied": json.dumps(DENIED),
        "images": json.dumps([{"path": path, "mimeType": kind} for path, kind in (images or {}).items()]),
        "mcp_servers": json.dumps([{"name": server.name, "config": _mcp_entry(server)} for server in mcp_servers]),
        "no_mcp": json.dumps(NO_MCP),
    }


def _mcp_entry(server: McpServer) -> dict[str, Any]:
    """Return the native entry of a server. pi replaces variables and commands in some values: these are literal."""
    entry = write_server(replace(server, transport="streamable-http") if server.transport == "sse" else server)
    for field in ("env", "headers"):
        if field in entry:
            entry[field] = {name: _literal(value) for name, value in entry[field].items()}
    return entry


def _literal(value: str) -> str:
    escaped = value.replace("$", "$$")
    return f"${escaped}" if escaped.startswith("!") else escaped
