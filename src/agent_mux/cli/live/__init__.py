"""The live view of a run at a terminal: cards in the scrollback, and a footer with what runs now.

`LiveView` has the interface of `agent_mux.cli.views.View`, so that it shows a run of this process, a replay, and a run
of another process alike. Feed it events, write the chunks that it returns with an `OutputWriter`, and set its footer
several times a second:

    view = live_view(screen_for(no_color=False), root=Path.cwd())
    output.attach_footer(view.new_footer())
    output.add(view.show(event))                                # for each event
    output.add(view.held_back())                                # several times a second
    output.set_footer(view.footer(run.agent, run.model))
    output.set_footer([])                                       # at the end
    output.add(view.end(result))

`RunDriver` does this for any `View` with `has_footer`. The package is imported when the agent runs, not when the
command starts: `agent_mux.cli.request.live_view` imports it with the first event.
"""
