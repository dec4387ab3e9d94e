"""Sizes of tool results, and results without images."""

from agent_loop.messages import Image, Text
from agent_loop.tools.results import output_bytes, without_images
from agent_loop.tools.tool import ToolResult


def test_output_bytes_are_utf8_bytes_of_text_and_base64_characters_of_images() -> None:
    assert output_bytes("aä€") == 6
    assert output_bytes((Text("aä"), Image("QUJD", "image/png"), Text("\ud800"))) == 3 + 4 + 3
    assert output_bytes(()) == 0


def test_images_become_a_marker_for_models_without_vision() -> None:
    result = ToolResult((Text("a"), Image("QUJD", "image/png")), is_error=True, details=5)
    blind = without_images(result)
    assert blind.content[0] == Text("a")
    assert blind.content[1] == Text("[image omitted: image/png, 4 base64 characters; this model accepts no images]")
    assert (blind.is_error, blind.details) == (True, 5)


def test_result_without_images_is_returned_unchanged() -> None:
    result = ToolResult((Text("a"),))
    assert without_images(result) is result
