"""Content and results as each revision knows them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longshore import Annotations, Audio, CallResult, Contents, EmbeddedResource, Icon, Image, ResourceLink, Text
from longshore.protocol.content import lower_block, lower_result
from longshore.protocol.revisions import NAMES, REVISIONS
from longshore.wire.codec import encode

OLDEST, WITH_AUDIO, WITH_LINKS, HANDSHAKE, MODERN = (REVISIONS[name] for name in NAMES)
EVERY = list(REVISIONS.values())


def wire(value: Any) -> Any:
    return json.loads(encode(value))


def test_blocks_are_written_as_the_specification_names_them() -> None:
    notes = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-01T00:00:00Z")
    assert wire(Text("hi", annotations=notes)) == {
        "type": "text",
        "text": "hi",
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-01T00:00:00Z"},
    }
    assert wire(Image(b"\x00\xff")) == {"type": "image", "data": "AP8=", "mimeType": "image/png"}
    assert wire(Audio(b"\x00\xff", "audio/ogg")) == {"type": "audio", "data": "AP8=", "mimeType": "audio/ogg"}
    link = ResourceLink("a://b", "b", size=3, icons=[Icon("https://x/y.png", sizes=["48x48"])])
    assert wire(link) == {
        "type": "resource_link",
        "uri": "a://b",
        "name": "b",
        "size": 3,
        "icons": [{"src": "https://x/y.png", "sizes": ["48x48"]}],
    }
    assert wire(EmbeddedResource(Contents("a://b", blob=b"\xfb\xff"))) == {
        "type": "resource",
        "resource": {"uri": "a://b", "blob": "+/8="},
    }


@pytest.mark.parametrize("revision", EVERY, ids=NAMES)
@pytest.mark.parametrize(
    "block", [Text("t"), Image(b"i"), EmbeddedResource(Contents("a://b", text="t")), {"type": "text", "text": "t"}]
)
def test_text_images_and_resources_pass_to_every_revision(block: Any, revision: Any) -> None:
    assert wire(lower_block(block, revision)) == wire(block)


@pytest.mark.parametrize("block", [Audio(b"12345"), {"type": "audio", "data": "MTIzNDU=", "mimeType": "audio/wav"}])
def test_audio_becomes_a_text_that_says_so_before_2025_03_26(block: Any) -> None:
    lowered = lower_block(block, OLDEST)
    assert isinstance(lowered, Text)
    assert "audio/wav" in lowered.text and "bytes" in lowered.text
    assert all(wire(lower_block(block, revision)) == wire(block) for revision in EVERY[1:])


@pytest.mark.parametrize(
    "block", [ResourceLink("a://b", "bee"), {"type": "resource_link", "uri": "a://b", "name": "bee"}]
)
def test_a_resource_link_becomes_a_text_with_its_uri_before_2025_06_18(block: Any) -> None:
    for revision in (OLDEST, WITH_AUDIO):
        assert lower_block(block, revision) == Text("bee: a://b")
    assert all(wire(lower_block(block, revision)) == wire(block) for revision in EVERY[2:])


def test_structured_content_is_left_out_before_2025_06_18() -> None:
    result = CallResult([Text("t")], {"a": 1})
    for revision in (OLDEST, WITH_AUDIO):
        assert wire(lower_result(result, revision)) == {"content": [{"type": "text", "text": "t"}]}
    for revision in (WITH_LINKS, HANDSHAKE, MODERN):
        assert wire(lower_result(result, revision)) == wire(result)


@pytest.mark.parametrize("value", [[1, 2], 7, "x", None, True])
def test_structured_content_that_is_no_object_is_wrapped_until_2026_07_28(value: Any) -> None:
    result = CallResult([], value)
    for revision in (WITH_LINKS, HANDSHAKE):
        assert wire(lower_result(result, revision))["structuredContent"] == {"result": value}
    assert wire(lower_result(result, MODERN))["structuredContent"] == value
    assert "structuredContent" not in wire(lower_result(result, OLDEST))


def test_lowering_leaves_the_authors_result_as_it_was() -> None:
    result = CallResult([Audio(b"x"), Text("t")], [1])
    before = wire(result)
    lower_result(result, OLDEST)
    lower_result(result, HANDSHAKE)
    assert wire(result) == before


def test_a_null_structured_content_is_not_lost() -> None:
    assert b'"structuredContent":null' in encode(CallResult([], None))


@pytest.mark.parametrize("block", [Text("t", meta={"a": 1}), {"type": "text", "text": "t", "_meta": {"a": 1}}])
def test_a_block_has_no_meta_before_2025_06_18(block: Any) -> None:
    known = ["_meta" in wire(lower_block(block, revision)) for revision in EVERY]
    assert known == [False, False, True, True, True]
    assert "_meta" not in wire(lower_result(CallResult([block]), OLDEST))["content"][0]
