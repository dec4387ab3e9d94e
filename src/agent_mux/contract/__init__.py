"""The checker of the event contract: `validate(events)` returns every violation of docs/spec/events.md.

The checker implements section 25 and the ordering rules of sections 5 to 22 independently: it shares no code with the
assembler, which produces the events. `RULES` lists the rules by section.

Events of types that this version does not know violate no rule, wherever they occur. Rules that a stream cannot show
are not checked: the total order of events (25.1.4), how thinking and text alternate (25.3.2), that the run waits for an
answer (25.4.2) and that an approved tool runs afterwards (25.4.3). Output that was under way when the run was paused
may follow `paused` (20.1).
"""

from agent_mux.contract.breach import RULES, Breach
from agent_mux.contract.checker import ContractChecker, validate

__all__ = ["RULES", "Breach", "ContractChecker", "validate"]
