"""JUnit reports: the results of single tests, read from a file that may be hostile.

The common dialects are read: `testsuites`, nested `testsuite`, `testcase` with `failure`, `error`, `skipped`, and the
elements of reruns that Maven writes. A document type is refused, because it may define entities.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError, XMLParser  # a document type, and so every entity, is refused

from agent_mux.compare.records import TestCaseResult

MAX_REPORT = 16 << 20  # bytes
MAX_TESTS = 20_000
MAX_DEPTH = 64  # elements inside each other
MAX_MESSAGE = 500  # characters of a message that are kept
MAX_NAME = 300  # characters of the name of a test that are kept
_CHUNK = 1 << 16
_FAILURES: Mapping[str, str] = {"failure": "fail", "error": "error"}
_RERUNS = frozenset({"flakyFailure", "flakyError"})
"""Elements of a test that failed first and passed when it was repeated."""


class JUnitError(Exception):
    """A report cannot be used. The message is the reason, without the name of the file."""


@dataclass(frozen=True, slots=True)
class JUnitReport:
    """The tests of a report."""

    tests: tuple[TestCaseResult, ...]
    """Sorted by name, without skipped tests. A test that ran several times is listed once, with its worst result."""
    skipped: int
    """Number of tests that were skipped."""
    flaky: frozenset[str]
    """Names of tests that ran several times with different results."""

    @property
    def failed(self) -> tuple[TestCaseResult, ...]:
        """The tests that did not pass."""
        return tuple(test for test in self.tests if test.status != "pass")


def read_junit(content: bytes) -> JUnitReport:
    """Read a report.

    Raises:
        JUnitError: It is not XML, no JUnit report, has a document type, or exceeds a limit.
    """
    if len(content) > MAX_REPORT:
        raise JUnitError(f"it is larger than {MAX_REPORT >> 20} MiB")
    target = _Target()
    parser = XMLParser(target=target)  # noqa: S314  # see the import
    try:
        for start in range(0, len(content), _CHUNK):
            parser.feed(content[start : start + _CHUNK])
        parser.close()
    except (ParseError, ValueError, LookupError) as error:  # also: an unknown encoding
        raise JUnitError(f"it is not XML: {error}") from error
    return _summarize(target)


_RANKS = ("pass", "timeout", "fail", "error")


@dataclass(slots=True)
class _Case:
    """A test case while it is read."""

    name: str
    status: str = "pass"
    message: str = ""
    is_flaky: bool = False


@dataclass(slots=True)
class _Target:
    """Receives the elements of a report."""

    cases: list[_Case] = field(default_factory=list)
    _path: list[str] = field(default_factory=list)
    _case: _Case | None = None
    _text: list[str] | None = None
    """The text of a failure that has no message, as far as it is kept."""

    def doctype(self, *_: object) -> None:
        raise JUnitError("it has a document type, which is not allowed; remove <!DOCTYPE ...>")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if not self._path and name not in {"testsuites", "testsuite"}:
            raise JUnitError(f"it is no JUnit report: its root is <{name[:40]}>")
        if len(self._path) == MAX_DEPTH:
            raise JUnitError(f"its elements are nested more than {MAX_DEPTH} deep")
        self._path.append(name)
        if name == "testcase":
            if len(self.cases) == MAX_TESTS:
                raise JUnitError(f"it has more than {MAX_TESTS} tests")
            self._case = _Case(_case_name(attributes))
            self.cases.append(self._case)
        elif self._case is not None and self._path[-2] == "testcase":
            self._detail(self._case, name, attributes)

    def end(self, _: str) -> None:
        name = self._path.pop()
        if name == "testcase":
            self._case = None
        elif self._text is not None and name in _FAILURES and self._case is not None:
            self._case.message = self._case.message or "".join(self._text).strip()[:MAX_MESSAGE]
            self._text = None

    def data(self, text: str) -> None:
        if self._text is not None and sum(map(len, self._text)) < MAX_MESSAGE:
            self._text.append(text[:MAX_MESSAGE])

    def close(self) -> None:
        """Return nothing: the cases are the result."""

    def _detail(self, case: _Case, name: str, attributes: Mapping[str, str]) -> None:
        if name in _FAILURES:
            case.status = max(case.status, _FAILURES[name], key=_rank)
            case.message = case.message or attributes.get("message", "")[:MAX_MESSAGE]
            self._text = []
        elif name == "skipped" and case.status == "pass":
            case.status = "skipped"
        elif name in _RERUNS:
            case.is_flaky = True


def _case_name(attributes: Mapping[str, str]) -> str:
    parts = (attributes.get("classname", ""), attributes.get("name", ""))
    return "::".join(part for part in parts if part)[:MAX_NAME] or "(no name)"


def _rank(status: str) -> int:
    return _RANKS.index(status) if status in _RANKS else -1


def _summarize(target: _Target) -> JUnitReport:
    by_name: dict[str, list[_Case]] = {}
    for case in target.cases:
        if case.status != "skipped":
            by_name.setdefault(case.name, []).append(case)
    skipped = sum(case.status == "skipped" for case in target.cases)
    return JUnitReport(tuple(_results(by_name)), skipped, frozenset(_flaky(by_name)))


def _results(by_name: Mapping[str, list[_Case]]) -> Iterator[TestCaseResult]:
    for name in sorted(by_name):
        worst = max(by_name[name], key=lambda case: _rank(case.status))
        status = "error" if worst.status == "error" else "fail" if worst.status == "fail" else "pass"
        yield TestCaseResult(name=name, status=status, message=worst.message)  # type: ignore[arg-type]


def _flaky(by_name: Mapping[str, list[_Case]]) -> Iterator[str]:
    for name, cases in by_name.items():
        if any(case.is_flaky for case in cases) or len({case.status == "pass" for case in cases}) > 1:
            yield name
