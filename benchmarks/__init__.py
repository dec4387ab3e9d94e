"""Benchmarks, always as ratios of things measured in one interleaved run: machines differ, ratios travel."""
