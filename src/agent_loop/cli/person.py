"""The person at the terminal: asked for permission and for answers, while the agent waits."""

from agent_loop.cli.approvals import Verdict
from agent_mux.assembler import OpenInteraction
from agent_mux.cli.interaction_prompts import describe_request, parse_answer, prompt_for
from agent_mux.cli.output import Chunk, OutputWriter
from agent_mux.cli.streams import TypedLines
from agent_mux.cli.terminal import Palette
from agent_mux.run.interaction import Approve, Deny, Text, describe

DECLINED = "the person did not want to answer"


class Person:
    """Asks on standard error and reads answers from standard input, both of them terminals."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        self._output = output
        self._palette = palette
        self._typed = TypedLines()

    async def ask(self, open_: OpenInteraction) -> Verdict:
        """Ask until there is an answer. All that is shown is made harmless."""
        pending = describe(open_, "")
        await self._output.drain()
        self._typed.discard()
        await self._show(describe_request(pending, self._palette))
        while True:
            await self._show(self._palette.bold(prompt_for(pending)))
            line = await self._typed.next()
            if line is None:
                await self._show("\n")
                return Verdict(granted=False, text=DECLINED)
            match parse_answer(pending, line):
                case Approve(always):
                    return Verdict(granted=True, always=always)
                case Deny(reason):
                    return Verdict(granted=False, text=reason or "")
                case Text(text):
                    return Verdict(granted=True, text=text)
                case chosen if chosen is not None:
                    return Verdict(granted=True, text=_option(open_, chosen.option))

    async def _show(self, text: str) -> None:
        self._output.add([Chunk("err", text)])
        await self._output.drain()


def _option(open_: OpenInteraction, chosen: str | int) -> str:
    options: tuple[str, ...] = getattr(open_.asked, "options", ())
    return options[chosen] if isinstance(chosen, int) and chosen < len(options) else str(chosen)
