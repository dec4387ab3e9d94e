"""Observation of runs by other systems: OpenTelemetry traces and metrics (`otel`)."""
