"""An extension of ours for one run: plain JavaScript, in the run's own directory, loaded with `--extension`.

It does what these agents leave to extensions, and tells what they do not say:

- whether a file was there before `write` wrote it: `details.existedBefore` of the result;
- where asked to: it asks the client of rpc mode before a tool runs. The dialog carries the call as JSON, so that what
  is shown is what will run; the answer is JSON, too. What is allowed for the rest of the session it remembers itself. A
  dialog that is dismissed, or ended by an interruption, blocks;
- images for the first prompt, which rpc mode takes only inline.
"""

import json
from collections.abc import Mapping

FILE = "agent-mux.ts"
TITLE = "agent-mux: may this tool run?"
UNASKED = ("find", "grep", "ls", "read")
"""Tools that only read."""
DENIED = "denied by the user"

_CODE = """\
// Written by agent-mux for one run.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";

const ASKS = %(asks)s;
const TITLE = %(title)s;
const UNASKED = new Set(%(unasked)s);
const DENIED = %(denied)s;
const IMAGES = %(images)s;

export default function (pi) {
  const allowed = new Set();
  const existed = new Map();

  async function ask(event, ctx) {
    const call = JSON.stringify({ id: event.toolCallId, name: event.toolName, input: event.input });
    const said = await ctx.ui.input(TITLE, call, { signal: ctx.signal });
    let answer = {};
    try {
      answer = JSON.parse(said ?? "{}");
    } catch {
      // Not ours: as good as no answer.
    }
    if (answer.decision === "always") allowed.add(event.toolName);
    if (answer.decision === "allow" || answer.decision === "always") return undefined;
    return { block: true, reason: answer.reason || DENIED };
  }

  pi.on("tool_call", async (event, ctx) => {
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


def extension(*, asks: bool, asks_everything: bool = False, images: Mapping[str, str] | None = None) -> str:
    """The code. `asks_everything`: tools that only read wait, too; `images`: absolute path -> MIME type."""
    return _CODE % {
        "asks": json.dumps(asks),
        "title": json.dumps(TITLE),
        "unasked": json.dumps(() if asks_everything else UNASKED),
        "denied": json.dumps(DENIED),
        "images": json.dumps([{"path": path, "mimeType": kind} for path, kind in (images or {}).items()]),
    }
