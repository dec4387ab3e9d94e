"""Concurrency limits: they are kept, owners are served in turn, and positions predict the order of admission."""

import itertools
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.process.scripted import scripted_adapter

from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.run.concurrency import ConcurrencyLimiter, ConcurrencyLimits, Slot, parse_limits
from agent_mux.run.fair_queue import FairQueue
from agent_mux.sdk.registry import AdapterRegistry

AGENTS = ("x", "y", "z")
OWNERS = ("ann", "bob", "eve")
LIMITS = st.builds(
    ConcurrencyLimits,
    total=st.none() | st.integers(1, 4),
    per_agent=st.none() | st.integers(1, 3),
    of_agent=st.dictionaries(st.sampled_from(AGENTS), st.integers(1, 3)),
)
STEPS = st.lists(
    st.tuples(st.just("enter"), st.sampled_from(AGENTS), st.sampled_from(OWNERS))
    | st.tuples(st.sampled_from(["leave", "give up"]), st.integers(0, 1000), st.none()),
    max_size=60,
)


@dataclass
class Simulation:
    """A limiter with the slots that were requested from it."""

    places: ConcurrencyLimiter
    working: list[Slot] = field(default_factory=list)
    waiting: list[Slot] = field(default_factory=list)
    owners: dict[Slot, str] = field(default_factory=dict)
    admitted: list[Slot] = field(default_factory=list)

    def enter(self, agent: str = "", owner: str = "") -> Slot:
        slot = self.places.enter(agent, owner)
        self.owners[slot] = owner
        self.waiting.append(slot)
        self.look()
        return slot

    def leave(self, slot: Slot) -> list[Slot]:
        slot.leave()
        for them in (self.working, self.waiting):
            if slot in them:
                them.remove(slot)
        return self.look()

    def look(self) -> list[Slot]:
        news = [slot for slot in self.waiting if slot.is_held]
        self.waiting = [slot for slot in self.waiting if not slot.is_held]
        self.working += news
        self.admitted += news
        return news

    def step(self, what: str, which: str | int, owner: str | None) -> None:
        if what == "enter":
            self.enter(str(which), owner or "")
            return
        them = self.working if what == "leave" else self.waiting
        if them:
            self.leave(them[int(which) % len(them)])

    def empty_in_order(self) -> list[Slot]:
        """End the runs in the order of their start, and return the waiting slots in the order of admission."""
        order: list[Slot] = []
        while self.waiting:
            order += self.leave(self.working[0])
        return order


def taken(slots: Iterable[Slot]) -> Counter[str]:
    return Counter(slot.agent for slot in slots)


def is_available(limits: ConcurrencyLimits, simulation: Simulation, agent: str) -> bool:
    own = limits.of(agent)
    is_room = limits.total is None or len(simulation.working) < limits.total
    return is_room and (own is None or taken(simulation.working)[agent] < own)


@given(limits=LIMITS, steps=STEPS)
def test_limits_are_kept_and_no_run_waits_for_a_free_slot(limits: ConcurrencyLimits, steps: list) -> None:  # type: ignore[type-arg]
    simulation = Simulation(ConcurrencyLimiter(limits))
    for step in steps:
        simulation.step(*step)
        assert (simulation.places.working, simulation.places.waiting) == (
            len(simulation.working),
            len(simulation.waiting),
        )
        assert limits.total is None or len(simulation.working) <= limits.total
        for agent, count in taken(simulation.working).items():
            own = limits.of(agent)
            assert own is None or count <= own
        assert not [slot for slot in simulation.waiting if is_available(limits, simulation, slot.agent)]


@given(limits=LIMITS, steps=STEPS)
def test_positions_are_the_order_in_which_equal_runs_are_admitted(limits: ConcurrencyLimits, steps: list) -> None:  # type: ignore[type-arg]
    simulation = Simulation(ConcurrencyLimiter(limits))
    for step in steps:
        simulation.step(*step)
    positions = {slot: slot.position for slot in simulation.waiting}
    assert {slot.position for slot in simulation.working} <= {None}
    assert simulation.empty_in_order() == sorted(positions, key=lambda slot: positions[slot] or 0)
    assert sorted(position or 0 for position in positions.values()) == list(range(1, len(positions) + 1))


@given(limits=LIMITS, steps=STEPS)
def test_runs_of_one_owner_and_agent_are_admitted_in_order(limits: ConcurrencyLimits, steps: list) -> None:  # type: ignore[type-arg]
    simulation = Simulation(ConcurrencyLimiter(limits))
    for step in steps:
        simulation.step(*step)
    simulation.empty_in_order()
    came = {slot: number for number, slot in enumerate(simulation.owners)}
    for agent, owner in itertools.product(AGENTS, OWNERS):
        numbers = [came[one] for one in simulation.admitted if (one.agent, simulation.owners[one]) == (agent, owner)]
        assert numbers == sorted(numbers)


@given(
    owners=st.lists(st.sampled_from(OWNERS), min_size=1, max_size=40),
    agents=st.lists(st.sampled_from(AGENTS), min_size=40, max_size=40),
    total=st.integers(1, 4),
)
def test_owners_are_served_in_turn_and_first_come_first_served(
    owners: list[str], agents: list[str], total: int
) -> None:
    simulation = Simulation(ConcurrencyLimiter(ConcurrencyLimits(total=total)))
    slots = [simulation.enter(agent, owner) for owner, agent in zip(owners, agents, strict=False)]
    lines = {owner: deque(t for t in slots if simulation.owners[t] == owner and not t.is_held) for owner in OWNERS}
    for line, other in itertools.permutations(lines.values(), 2):
        assert not set(line) & set(other)
    order = simulation.empty_in_order()
    assert [simulation.owners[slot] for slot in order] == in_turn(owners[total:])
    for slot in order:
        assert lines[simulation.owners[slot]].popleft() is slot


def in_turn(owners: list[str]) -> list[str]:
    """Return the expected order: each owner once, in the order of arrival, repeatedly."""
    left, turns = Counter(owners), list(dict.fromkeys(owners))
    order: list[str] = []
    while any(left.values()):
        for owner in turns:
            if left[owner]:
                left[owner] -= 1
                order.append(owner)
    return order


def test_a_run_whose_agent_is_full_is_skipped_and_keeps_its_turn() -> None:
    simulation = Simulation(ConcurrencyLimiter(ConcurrencyLimits(total=3, of_agent={"x": 1})))
    works = simulation.enter("x", "bob")
    simulation.enter("y", "bob")
    simulation.enter("y", "bob")
    full = simulation.enter("x", "ann")
    theirs = [simulation.enter("x", "bob") for _ in range(3)]
    later = [simulation.enter("y", "ann") for _ in range(3)]
    for one in later:  # later runs are admitted first, because their agent has a free slot
        leaving = next(slot for slot in simulation.working if slot.agent == "y")
        assert simulation.leave(leaving) == [one]
    assert simulation.leave(works) == [full]
    assert simulation.leave(full) == [theirs[0]]


def test_a_steady_supply_for_one_agent_starves_no_run() -> None:
    """`ann` waits for one slot of x while she gets slots of y; `bob` requests x repeatedly."""
    simulation = Simulation(ConcurrencyLimiter(ConcurrencyLimits(total=2, of_agent={"x": 1})))
    at_x, at_y = simulation.enter("x", "bob"), simulation.enter("y", "ann")
    wanted = simulation.enter("x", "ann")
    for _ in range(20):
        simulation.enter("x", "bob")
        simulation.enter("y", "ann")
        (at_y,) = simulation.leave(at_y)
        assert at_y.agent == "y"
        (at_x,) = simulation.leave(at_x)
        if at_x is wanted:
            return
    raise AssertionError("it waits still")


def test_only_the_first_skipped_run_keeps_its_turn() -> None:
    simulation = Simulation(ConcurrencyLimiter(ConcurrencyLimits(of_agent={"x": 1})))
    works = simulation.enter("x", "eve")
    many = [simulation.enter("x", "ann") for _ in range(5)]
    simulation.enter("y", "ann")
    theirs = simulation.enter("x", "bob")
    assert simulation.leave(works) == [many[0]]
    assert simulation.leave(many[0]) == [theirs]
    assert simulation.leave(theirs) == [many[1]]


def test_a_full_queue_refuses_a_run_and_is_unchanged() -> None:
    simulation = Simulation(ConcurrencyLimiter(ConcurrencyLimits(total=1, of_agent={"y": 1}, waiting=2)))
    works = simulation.enter("x", "ann")
    waits = [simulation.enter("x", "ann"), simulation.enter("x", "bob")]
    changed = simulation.places.changed
    with pytest.raises(AgentMuxError, match="1 runs are active and 2 wait, the most allowed") as caught:
        simulation.places.enter("x", "eve")
    assert (caught.value.code, caught.value.recoverable) == ("LIMIT_EXCEEDED", True)
    assert not changed.is_set()
    assert [slot.position for slot in waits] == [1, 2]
    assert simulation.leave(works) == [waits[0]]
    simulation.enter("x", "eve")


def test_a_queue_limit_of_zero_refuses_only_runs_that_would_wait() -> None:
    places = ConcurrencyLimiter(ConcurrencyLimits(total=1, waiting=0))
    first = places.enter()
    with pytest.raises(AgentMuxError, match="the most allowed"):
        places.enter()
    first.leave()
    assert places.enter().is_held


def test_leaving_a_second_time_does_nothing() -> None:
    places = ConcurrencyLimiter(ConcurrencyLimits(total=1))
    first, second, third = (places.enter() for _ in range(3))
    third.leave()
    third.leave()
    first.leave()
    first.leave()
    assert (second.is_held, places.working, places.waiting) == (True, 1, 0)
    assert third.position is None


def test_every_enter_and_leave_is_a_separate_change() -> None:
    places = ConcurrencyLimiter(ConcurrencyLimits(total=1))
    before = places.changed
    first = places.enter()
    entered = places.changed
    assert (before.is_set(), entered.is_set()) == (True, False)
    waits = places.enter()
    assert entered.is_set()
    waiting = places.changed
    waits.leave()
    left = places.changed
    assert (waiting.is_set(), left.is_set()) == (True, False)
    first.leave()
    first.leave()
    assert left.is_set()


def test_the_order_of_a_thousand_is_simulated_once_per_change(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []
    copy = FairQueue.copy
    monkeypatch.setattr(FairQueue, "copy", lambda queue: (played.append(len(queue)), copy(queue))[1])
    simulation = Simulation(ConcurrencyLimiter(ConcurrencyLimits(total=2, per_agent=1)))
    slots = [simulation.enter(AGENTS[number % 3], f"owner {number % 400}") for number in range(1002)]
    positions = {slot: slot.position or 0 for slot in slots if not slot.is_held}
    assert sorted(positions.values()) == list(range(1, 1001))
    assert played == [1000]
    assert simulation.empty_in_order() == sorted(positions, key=lambda slot: positions[slot])


def test_a_copy_of_a_queue_is_independent() -> None:
    queue: FairQueue[str] = FairQueue()
    for item, owner in (("a1", "ann"), ("a2", "ann"), ("b1", "bob")):
        queue.add(item, owner, "")
    twin = queue.copy()
    assert [twin.pop(lambda _: True) for _ in range(4)] == ["a1", "b1", "a2", None]
    assert (len(queue), len(twin), "a1" in queue, "a1" in twin) == (3, 0, True, False)
    queue.remove("a1")
    assert [queue.pop(lambda _: True) for _ in range(3)] == ["a2", "b1", None]
    with pytest.raises(KeyError):
        queue.remove("a1")


# -- options of a client


def registry() -> AdapterRegistry:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(""))
    return adapters


def test_limits_may_be_for_all_agents_or_by_name_and_alias() -> None:
    adapters = AdapterRegistry()
    assert parse_limits(None, None, None, adapters) == ConcurrencyLimits()
    assert parse_limits(3, 2, 0, adapters) == ConcurrencyLimits(total=3, per_agent=2, waiting=0)
    limits = parse_limits(None, {"claude-code": 2, "codex": 1}, None, adapters)
    assert (limits.of("claude"), limits.of("codex"), limits.of("gemini")) == (2, 1, None)


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2", {"scripted": 0}, {"scripted": None}, {"unknown": 1}, {1: 1}])
def test_an_agent_limit_needs_a_count_and_a_known_agent(most: object) -> None:
    with pytest.raises(ValidationError, match="max_concurrent_runs_per_agent"):
        parse_limits(None, most, None, registry())


def test_an_agent_has_one_limit() -> None:
    with pytest.raises(ValidationError, match="claude has one already"):
        parse_limits(None, {"claude": 2, "claude-code": 3}, None, AdapterRegistry())


def test_every_invalid_limit_is_reported() -> None:
    with pytest.raises(ValidationError) as caught:
        parse_limits(0, {"unknown": 1}, -1, registry())
    assert [problem.path for problem in caught.value.fields] == [
        "max_concurrent_runs", "queue_limit", "max_concurrent_runs_per_agent",
    ]  # fmt: skip
