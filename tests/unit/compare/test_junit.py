"""JUnit reports: the dialects of programs, and files that are hostile."""

import pytest

from agent_mux.compare.checks.junit import JUnitError, read_junit

REPORT = b"""<?xml version="1.0"?>
<testsuites><testsuite><testsuite name="inner">
  <testcase classname="m" name="passes"/>
  <testcase classname="m" name="fails"><failure message="1 != 2">trace</failure></testcase>
  <testcase classname="m" name="breaks"><error>
     no fixture</error></testcase>
  <testcase classname="m" name="skips"><skipped message="later"/></testcase>
  <testcase classname="m" name="repeated"><failure/></testcase>
  <testcase classname="m" name="repeated"/>
  <testcase classname="m" name="maven"><flakyFailure/></testcase>
</testsuite></testsuite></testsuites>"""
BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>'


def test_report_has_the_result_of_every_test() -> None:
    report = read_junit(REPORT)
    assert [(test.name, test.status, test.message) for test in report.tests] == [
        ("m::breaks", "error", "no fixture"),
        ("m::fails", "fail", "1 != 2"),
        ("m::maven", "pass", ""),
        ("m::passes", "pass", ""),
        ("m::repeated", "fail", ""),
    ]
    assert report.skipped == 1
    assert report.flaky == {"m::repeated", "m::maven"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not XML"),
        (b"<testsuite>", "it is not XML"),
        (b"\xff\xfe\x00", "it is not XML"),
        (b"<html/>", "it is no JUnit report: its root is <html>"),
        (BOMB, "it has a document type"),
        (b"<testsuite>" + b"<a>" * 100, "nested more than 64 deep"),
        (b"<testsuite>" + b"<testcase/>" * 20_001, "more than 20000 tests"),
        (b" " * ((16 << 20) + 1), "larger than 16 MiB"),
    ],
)
def test_unusable_report_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(JUnitError, match=problem):
        read_junit(content)
