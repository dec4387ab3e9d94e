"""omp uses pi's dialect, and the same scripts."""

from tests.conformance.truth_pi import DIALECT, native_results

__all__ = ["DIALECT", "native_results"]
