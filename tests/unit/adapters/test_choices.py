"""Questions with described options."""

from agent_mux_adapters._dialects.choices import read_choices


def test_context_has_the_header_and_the_descriptions_that_add_to_a_label() -> None:
    options = [{"label": "Short", "description": "One line"}, {"label": "Long", "description": "Long"}, {"label": "No"}]
    assert read_choices({"header": "Style", "options": options}) == (
        "Style\nShort: One line",
        ("Short", "Long", "No"),
    )
    assert read_choices({"options": "broken"}) == (None, ())
