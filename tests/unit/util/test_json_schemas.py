"""JSON Schemas are equal on every version of Python."""

from typing import Annotated

import msgspec

from agent_mux._util.json_schemas import json_schema, json_schema_components


class Described(msgspec.Struct):
    """One line.

    A second paragraph, indented in the source.
    """

    description: Annotated[str, msgspec.Meta(description="A field of that name.")] = "  kept"


DESCRIPTION = "One line.\n\nA second paragraph, indented in the source."
PROPERTIES = {"description": {"type": "string", "description": "A field of that name.", "default": "  kept"}}


def test_descriptions_have_no_indentation() -> None:
    (definition,) = json_schema(Described)["$defs"].values()
    assert definition["description"] == DESCRIPTION
    assert definition["properties"] == PROPERTIES


def test_descriptions_of_components_have_no_indentation() -> None:
    (reference,), components = json_schema_components([Described], ref_template="#/x/{name}")
    assert reference == {"$ref": "#/x/Described"}
    assert components["Described"]["description"] == DESCRIPTION
