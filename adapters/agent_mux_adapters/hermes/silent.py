"""Events of the gateway that are known and say nothing about the run, and why.

All that `tui_gateway/server.py` of Hermes 0.19.0 can print, and that `events.py` does not read.
"""

_FOR_PEOPLE = "for people at a terminal or a desktop"
_BACKGROUND = "a prompt that another client runs beside the session"

SILENT = {
    "agent.terminal.output": "the output of a background command, whose call ended when it was started",
    "background.complete": _BACKGROUND,
    "billing.step_up.verification": _FOR_PEOPLE,
    "browser.progress": _FOR_PEOPLE,
    "gateway.ready": "no session is open yet",
    "moa.aggregating": "several models answer together; the answer follows",
    "moa.reference": "a draft of another model, of which the answer is made",
    "notification.clear": _FOR_PEOPLE,
    "pet.generate.progress": _FOR_PEOPLE,
    "pet.hatch.progress": _FOR_PEOPLE,
    "preview.restart.complete": _BACKGROUND,
    "preview.restart.progress": _BACKGROUND,
    "reaction": _FOR_PEOPLE,
    "reasoning.available": "the beginning of the answer, once more",
    "secret.expire": "the secret was not given",
    "session.title": _FOR_PEOPLE,
    "skin.changed": _FOR_PEOPLE,
    "sudo.expire": "the password was not given",
    "terminal.close": _FOR_PEOPLE,
    "voice.status": _FOR_PEOPLE,
    "voice.transcript": _FOR_PEOPLE,
}
ELSEWHERE = "about another session of this gateway"
