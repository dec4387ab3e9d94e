"""omp speaks pi's dialect, and its scripts are the same."""

from tests.conformance.truth_pi import DIALECT, native_results

__all__ = ["DIALECT", "native_results"]
