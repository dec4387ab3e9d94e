"""The checker of the event contract: `validate(events)` tells every breach of it. Source: agent-events spec.

It is an implementation of its own of section 25 and of the ordering rules of sections 5 to 22: it shares no code with
what makes the events. `RULES` lists what is checked, by section; each module says how it reads its sections.

Events of types that this version does not know break no rule, wherever they are. What a stream cannot show is not
checked: that events are totally ordered (25.1.4), how generations alternate (25.3.2), that the run waits for an answer
(25.4.2) and that an approved tool runs afterwards (25.4.3). Output that was under way when the agent was stopped may
still come after `paused` (20.1).
"""

from agent_mux.contract.breach import RULES, Breach
from agent_mux.contract.checker import ContractChecker, validate

__all__ = ["RULES", "Breach", "ContractChecker", "validate"]
