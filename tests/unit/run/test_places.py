"""Who may work and who waits: limits are kept, owners are served in turn, and a position is the real order."""

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
class House:
    """Places, and everybody who came."""

    places: ConcurrencyLimiter
    working: list[Slot] = field(default_factory=list)
    waiting: list[Slot] = field(default_factory=list)
    owners: dict[Slot, str] = field(default_factory=dict)
    admitted: list[Slot] = field(default_factory=list)

    def enter(self, agent: str = "", owner: str = "") -> Slot:
        ticket = self.places.enter(agent, owner)
        self.owners[ticket] = owner
        self.waiting.append(ticket)
        self.look()
        return ticket

    def leave(self, ticket: Slot) -> list[Slot]:
        ticket.leave()
        for them in (self.working, self.waiting):
            if ticket in them:
                them.remove(ticket)
        return self.look()

    def look(self) -> list[Slot]:
        news = [ticket for ticket in self.waiting if ticket.is_held]
        self.waiting = [ticket for ticket in self.waiting if not ticket.is_held]
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
        """All take equally long: whoever began first is the first to leave. Those who waited, as they are admitted."""
        order: list[Slot] = []
        while self.waiting:
            order += self.leave(self.working[0])
        return order


def taken(tickets: Iterable[Slot]) -> Counter[str]:
    return Counter(ticket.agent for ticket in tickets)


def has_room(limits: ConcurrencyLimits, house: House, agent: str) -> bool:
    own = limits.of(agent)
    is_room = limits.total is None or len(house.working) < limits.total
    return is_room and (own is None or taken(house.working)[agent] < own)


@given(limits=LIMITS, steps=STEPS)
def test_limits_are_kept_and_nobody_waits_for_a_place_that_is_free(limits: ConcurrencyLimits, steps: list) -> None:  # type: ignore[type-arg]
    house = House(ConcurrencyLimiter(limits))
    for step in steps:
        house.step(*step)
        assert (house.places.working, house.places.waiting) == (len(house.working), len(house.waiting))
        assert limits.total is None or len(house.working) <= limits.total
        for agent, count in taken(house.working).items():
            own = limits.of(agent)
            assert own is None or count <= own
        assert not [ticket for ticket in house.waiting if has_room(limits, house, ticket.agent)]


@given(limits=LIMITS, steps=STEPS)
def test_positions_are_the_order_in_which_equal_runs_are_admitted(limits: ConcurrencyLimits, steps: list) -> None:  # type: ignore[type-arg]
    house = House(ConcurrencyLimiter(limits))
    for step in steps:
        house.step(*step)
    told = {ticket: ticket.position for ticket in house.waiting}
    assert {ticket.position for ticket in house.working} <= {None}
    assert house.empty_in_order() == sorted(told, key=lambda ticket: told[ticket] or 0)
    assert sorted(position or 0 for position in told.values()) == list(range(1, len(told) + 1))


@given(limits=LIMITS, steps=STEPS)
def test_one_owner_s_runs_of_one_agent_are_admitted_as_they_came(limits: ConcurrencyLimits, steps: list) -> None:  # type: ignore[type-arg]
    house = House(ConcurrencyLimiter(limits))
    for step in steps:
        house.step(*step)
    house.empty_in_order()
    came = {ticket: number for number, ticket in enumerate(house.owners)}
    for agent, owner in itertools.product(AGENTS, OWNERS):
        numbers = [came[one] for one in house.admitted if (one.agent, house.owners[one]) == (agent, owner)]
        assert numbers == sorted(numbers)


@given(
    owners=st.lists(st.sampled_from(OWNERS), min_size=1, max_size=40),
    agents=st.lists(st.sampled_from(AGENTS), min_size=40, max_size=40),
    total=st.integers(1, 4),
)
def test_owners_are_served_in_turn_and_first_come_first_served(
    owners: list[str], agents: list[str], total: int
) -> None:
    house = House(ConcurrencyLimiter(ConcurrencyLimits(total=total)))
    tickets = [house.enter(agent, owner) for owner, agent in zip(owners, agents, strict=False)]
    lines = {owner: deque(t for t in tickets if house.owners[t] == owner and not t.is_held) for owner in OWNERS}
    for line, other in itertools.permutations(lines.values(), 2):
        assert not set(line) & set(other)
    order = house.empty_in_order()
    assert [house.owners[ticket] for ticket in order] == in_turn(owners[total:])
    for ticket in order:
        assert lines[house.owners[ticket]].popleft() is ticket


def in_turn(owners: list[str]) -> list[str]:
    """Each one once, in the order of their coming, and again."""
    left, turns = Counter(owners), list(dict.fromkeys(owners))
    order: list[str] = []
    while any(left.values()):
        for owner in turns:
            if left[owner]:
                left[owner] -= 1
                order.append(owner)
    return order


def test_a_run_whose_agent_is_full_is_passed_over_and_keeps_its_turn() -> None:
    house = House(ConcurrencyLimiter(ConcurrencyLimits(total=3, of_agent={"x": 1})))
    works = house.enter("x", "bob")
    house.enter("y", "bob")
    house.enter("y", "bob")
    full = house.enter("x", "ann")
    theirs = [house.enter("x", "bob") for _ in range(3)]
    later = [house.enter("y", "ann") for _ in range(3)]
    for one in later:  # what came later overtakes it, as its agent has room
        leaving = next(ticket for ticket in house.working if ticket.agent == "y")
        assert house.leave(leaving) == [one]
    assert house.leave(works) == [full]
    assert house.leave(full) == [theirs[0]]


def test_who_fills_another_agent_again_and_again_starves_nobody() -> None:
    """`ann` wants one place at x, and is served at y all the time; `bob` asks for x again and again."""
    house = House(ConcurrencyLimiter(ConcurrencyLimits(total=2, of_agent={"x": 1})))
    at_x, at_y = house.enter("x", "bob"), house.enter("y", "ann")
    wanted = house.enter("x", "ann")
    for _ in range(20):
        house.enter("x", "bob")
        house.enter("y", "ann")
        (at_y,) = house.leave(at_y)
        assert at_y.agent == "y"
        (at_x,) = house.leave(at_x)
        if at_x is wanted:
            return
    raise AssertionError("it waits still")


def test_only_the_first_of_those_that_are_passed_over_keeps_its_turn() -> None:
    house = House(ConcurrencyLimiter(ConcurrencyLimits(of_agent={"x": 1})))
    works = house.enter("x", "eve")
    many = [house.enter("x", "ann") for _ in range(5)]
    house.enter("y", "ann")
    theirs = house.enter("x", "bob")
    assert house.leave(works) == [many[0]]
    assert house.leave(many[0]) == [theirs]
    assert house.leave(theirs) == [many[1]]


def test_a_queue_that_is_full_refuses_one_more_and_stays_as_it_was() -> None:
    house = House(ConcurrencyLimiter(ConcurrencyLimits(total=1, of_agent={"y": 1}, waiting=2)))
    works = house.enter("x", "ann")
    waits = [house.enter("x", "ann"), house.enter("x", "bob")]
    changed = house.places.changed
    with pytest.raises(AgentMuxError, match="1 runs work and 2 wait, and no more may") as caught:
        house.places.enter("x", "eve")
    assert (caught.value.code, caught.value.recoverable) == ("LIMIT_EXCEEDED", True)
    assert not changed.is_set()
    assert [ticket.position for ticket in waits] == [1, 2]
    assert house.leave(works) == [waits[0]]
    house.enter("x", "eve")


def test_no_queue_at_all_refuses_what_would_wait_and_nothing_else() -> None:
    places = ConcurrencyLimiter(ConcurrencyLimits(total=1, waiting=0))
    first = places.enter()
    with pytest.raises(AgentMuxError, match="no more may"):
        places.enter()
    first.leave()
    assert places.enter().is_held


def test_leaving_twice_is_leaving_once() -> None:
    places = ConcurrencyLimiter(ConcurrencyLimits(total=1))
    first, second, third = (places.enter() for _ in range(3))
    third.leave()
    third.leave()
    first.leave()
    first.leave()
    assert (second.is_held, places.working, places.waiting) == (True, 1, 0)
    assert third.position is None


def test_every_coming_and_going_is_a_change_of_its_own() -> None:
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


def test_the_order_of_a_thousand_is_played_through_once_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []
    copy = FairQueue.copy
    monkeypatch.setattr(FairQueue, "copy", lambda queue: (played.append(len(queue)), copy(queue))[1])
    house = House(ConcurrencyLimiter(ConcurrencyLimits(total=2, per_agent=1)))
    tickets = [house.enter(AGENTS[number % 3], f"owner {number % 400}") for number in range(1002)]
    positions = {ticket: ticket.position or 0 for ticket in tickets if not ticket.is_held}
    assert sorted(positions.values()) == list(range(1, 1001))
    assert played == [1000]
    assert house.empty_in_order() == sorted(positions, key=lambda ticket: positions[ticket])


def test_a_copy_of_a_queue_goes_its_own_way() -> None:
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


# -- what a client is given


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


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2", {"scripted": 0}, {"scripted": None}, {"nobody": 1}, {1: 1}])
def test_a_limit_of_an_agent_is_a_number_of_runs_of_one_that_there_is(most: object) -> None:
    with pytest.raises(ValidationError, match="max_concurrent_runs_per_agent"):
        parse_limits(None, most, None, registry())


def test_an_agent_has_one_limit() -> None:
    with pytest.raises(ValidationError, match="claude has one already"):
        parse_limits(None, {"claude": 2, "claude-code": 3}, None, AdapterRegistry())


def test_every_limit_that_cannot_be_is_told() -> None:
    with pytest.raises(ValidationError) as caught:
        parse_limits(0, {"nobody": 1}, -1, registry())
    assert [problem.path for problem in caught.value.fields] == [
        "max_concurrent_runs", "queue_limit", "max_concurrent_runs_per_agent",
    ]  # fmt: skip
