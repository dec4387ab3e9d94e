"""The conversion of prompts from the editor."""

from pathlib import Path
from typing import Any

import pytest
from acp import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)
from acp.schema import HttpMcpServer, SseMcpServer

from agent_mux import Attachment, McpServer
from agent_mux.acp_server.prompts import ImageStore, read_prompt
from agent_mux.acp_server.session_factory import merge_servers
from agent_mux.errors import ValidationError


def test_text_and_links_in_their_order() -> None:
    blocks = [text_block("see "), resource_link_block("a b.py", "file:///w/a%20b.py#L3"), text_block(" and "),
              resource_link_block("docs", "https://docs.example/")]  # fmt: skip
    assert read_prompt(blocks).text == "see @/w/a b.py#L3 and [docs](https://docs.example/)"


def test_file_contents_follow_the_prompt() -> None:
    file = resource_block(embedded_text_resource("file:///w/a.py", "x = 1"))
    assert read_prompt([file, text_block(" explain")]).text == (
        '@/w/a.py explain\n\n<context ref="file:///w/a.py">\nx = 1\n</context>'
    )


def test_an_image_is_an_attachment() -> None:
    prompt = read_prompt([text_block("what is it?"), image_block("aGk=", "image/png")])
    assert prompt.attachments == (Attachment(base64="aGk=", mime_type="image/png"),)
    assert read_prompt([image_block("aGk=", "image/png")]).text


def test_images_are_files_until_the_connection_ends() -> None:
    pictures = ImageStore()
    [image] = pictures.store_images(read_prompt([image_block("aGk=", "image/png")])).attachments
    assert image.file_path is not None
    assert (Path(image.file_path).read_bytes(), Path(image.file_path).suffix) == (b"hi", ".png")
    assert Path(image.file_path).parent.stat().st_mode & 0o077 == 0
    pictures.close()
    assert not Path(image.file_path).parent.exists()


def test_invalid_base64_is_rejected() -> None:
    with pytest.raises(ValidationError, match="base64"):
        ImageStore().store_images(read_prompt([image_block("*", "image/png")]))


@pytest.mark.parametrize(
    "blocks",
    [[], [text_block("")], [text_block(" \n")], [audio_block("aGk=", "audio/wav")],
     [resource_block(embedded_blob_resource("file:///w/x.bin", "aGk="))]],
)  # fmt: skip
def test_unsupported_blocks_are_rejected(blocks: list[Any]) -> None:
    with pytest.raises(ValidationError, match="prompt"):
        read_prompt(blocks)


def test_servers_get_valid_and_unique_names() -> None:
    own = [McpServer("files", command="/bin/mine")]
    told = [
        HttpMcpServer(type="http", name="files", url="https://a.example", headers=[]),
        SseMcpServer(type="sse", name="my files", url="https://b.example", headers=[]),
        SseMcpServer(type="sse", name="my.files", url="https://c.example", headers=[]),
        SseMcpServer(type="sse", name="x" * 70, url="https://d.example", headers=[]),
    ]
    servers = merge_servers(told, own)
    names = ["files", "files-2", "my_files", "my_files-2", "x" * 64]
    assert [server.name for server in servers] == names
    assert [server.transport for server in servers] == ["stdio", "streamable-http", "sse", "sse", "sse"]
