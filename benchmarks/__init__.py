"""Benchmarks. Results are ratios of contestants in one interleaved run, which are comparable across machines."""
