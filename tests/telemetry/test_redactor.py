"""Removing secrets from JSON, also from what no server would accept."""

from __future__ import annotations

import json

import pytest

from longshore.telemetry.redactor import redact_json

SECRET = "hunter2-and-more"
MOST = 1 << 14


def nested(depth: int) -> str:
    return '{"a":' * depth + json.dumps({"password": SECRET}) + "}" * depth


@pytest.mark.parametrize("depth", [1, 400, 600, 5000])
@pytest.mark.parametrize("is_text", [False, True])
def test_json_of_any_depth_is_shown_without_its_secret(depth: int, is_text: bool) -> None:
    """Frames are shown before their depth is checked."""
    text = nested(depth)
    shown = redact_json(json.dumps({"text": text}).encode() if is_text else text.encode(), 1 << 20)
    assert "password" in shown and SECRET not in shown


def test_frames_that_are_no_json_are_shown() -> None:
    for data in (b"[" * MOST, b"\xff{", b'{"password": "' + SECRET.encode(), b""):
        assert SECRET not in redact_json(data, MOST)
