"""The stream-json format of Claude Code, which several agents print: one JSON object per line, one-shot or two-way.

Shared between the agents are the `system`, `stream_event`, `assistant`, `user` and `result` lines around the content
blocks of a model's API, and the control protocol (`control_request`, `control_response`) for permissions, questions and
interruptions. An adapter adds what is specific to its agent: its tools, its accounting, its `system` lines, and how it
reports failures.

    tools.ToolTable              the agent's tools, as a table
    tools.StreamJsonCalls        tool calls, from the first fragment to the result
    tools.StreamJsonSubagents    sub-agents, from the delegating call to the report
    messages.MessageReader       messages of one agent; subclassed where an agent differs
    messages.MessageReaders      one reader for the main agent and one for each sub-agent
    approvals.StreamJsonApprovals    permissions and questions
    codec.StreamJsonInput        when the agent's stdin may be closed
    codec.StreamJsonCodec        all of these together, and the hot path
"""
