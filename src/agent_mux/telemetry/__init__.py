"""What can be observed of runs from outside: logs of the library's own life (`logs`), traces and metrics (`otel`)."""
