"""What an agent calls back during a run: Python functions of the caller, over HTTP on the loopback interface."""
