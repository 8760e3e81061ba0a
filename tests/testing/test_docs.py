"""`docs/testing.md` is a project: its files are written down, and pytest passes on them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = "pytester"
PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


def files() -> dict[str, str]:
    blocks = re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return dict(blocks)


def test_the_page_is_a_project_that_passes(pytester: pytest.Pytester) -> None:
    found = files()
    assert found.keys() == {"server.py", "pyproject.toml", "test_server.py", "test_recorded.py", "test_toolset.py"}
    for name, text in found.items():
        (pytester.path / name).write_text(text)
    result = pytester.runpytest_subprocess("--mcp-update", "-W", "error", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=10)
    broken = found["server.py"].replace("pieces: int = 1", "pieces: int = 1, *, currency: str")
    (pytester.path / "server.py").write_text(broken)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "surface")
    result.assert_outcomes(failed=1, deselected=9)
    result.stdout.fnmatch_lines(["*tool price*", "*BREAKS  parameter 'currency' is new and required*"])


def test_the_page_names_every_fixture_mark_and_public_name() -> None:
    import longshore.testing
    from longshore.testing import plugin

    fixtures = [name for name in vars(plugin) if name.startswith("mcp_")]
    assert {"mcp_client", "mcp_surface"} <= set(fixtures)
    assert [name for name in [*fixtures, *longshore.testing.__all__] if name not in PAGE] == []
