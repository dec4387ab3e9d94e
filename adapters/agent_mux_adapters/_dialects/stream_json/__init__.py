"""Claude-shaped stream-json, which several agents print: one JSON object per line, one-shot or two-way.

The shape is shared, the agents are not. Shared is what stands in the modules here: `system`, `stream_event`,
`assistant`, `user` and `result` lines around the content blocks of a model's API; and the control protocol
(`control_request`, `control_response`) for permissions, questions and interruptions. What an agent has for itself - its
tools, its accounting, its `system` lines, how it says that a turn failed - it brings along:

    tools.Tools                  a table: what its tools are to us
    messages.MessageReader       the messages of one agent; to be subclassed where they differ
    scopes.Scopes                the main agent and its sub-agents
    calls.ToolCalls              the tool calls, from their first fragment to their result
    control.Requests             permissions and questions
    conversation.Conversation    when the agent's standard input may be closed
    codec.StreamJsonCodec        all of it together, and the hot path
"""
