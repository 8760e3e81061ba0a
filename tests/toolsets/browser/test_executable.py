"""Finding the program of a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser, install_line


def program(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROME_PATH", raising=False)


def test_the_option_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (program(tmp_path / name) for name in ("one", "two"))
    monkeypatch.setenv("CHROME_PATH", two)
    assert find_browser(one) == one
    assert find_browser(None) == two


def test_a_command_is_found_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "microsoft-edge")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("longshore.toolsets.browser.executable._LINUX_PLACES", ())
    assert find_browser() == path


def test_a_program_in_the_roots_is_no_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual environment of the working folder is on PATH while it is active, and tools can write there."""
    root = tmp_path / "project"
    bin_folder, links = root / ".venv/bin", tmp_path / "links"
    for folder in (bin_folder, links):
        folder.mkdir(parents=True)
    planted = program(bin_folder / "chromium")
    (links / "chrome").symlink_to(planted)
    monkeypatch.setenv("PATH", f"{bin_folder}:{links}:.")
    monkeypatch.setattr("longshore.toolsets.browser.executable._LINUX_PLACES", ())
    assert find_browser() == str(links / "chrome"), "they are no roots yet"
    for roots in ((str(root),), ()):
        monkeypatch.chdir(root)
        with pytest.raises(BrowserUnavailable):
            find_browser(None, roots)
    monkeypatch.setenv("CHROME_PATH", "chromium")
    with pytest.raises(BrowserUnavailable):
        find_browser()
    assert find_browser(planted) == planted, "a path is what the user has chosen"


def test_a_wrong_path_names_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROME_PATH", str(tmp_path / "absent"))
    with pytest.raises(BrowserUnavailable, match=r"CHROME_PATH names .*absent.*install"):
        find_browser()


def test_without_a_browser_the_error_has_the_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "apk")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("longshore.toolsets.browser.executable._LINUX_PLACES", ())
    with pytest.raises(BrowserUnavailable, match="apk add chromium"):
        find_browser()


def test_the_install_line_of_a_mac_uses_homebrew() -> None:
    assert install_line("darwin") == "brew install --cask google-chrome"
