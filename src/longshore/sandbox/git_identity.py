"""The user's git settings for confined commands: name, address and preferences, without credentials and programs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from typing import Final

from longshore.files import user_directory, write_atomic
from longshore.sandbox.environment import STARTER

PASSED: Final = re.compile(
    r"user\.(name|email)|(author|committer)\.(name|email)|init\.defaultbranch|alias\..+|safe\.directory"
    r"|core\.(autocrlf|eol|safecrlf|quotepath|filemode|ignorecase|whitespace|abbrev)"
    r"|(pull|rebase|merge|rerere|fetch|color|column|branch|advice)\.[a-z]+|push\.(default|autosetupremote)"
    r"|diff\.(algorithm|renames|colormoved|context|mnemonicprefix|noprefix|submodule)|commit\.(cleanup|verbose)|log\.[a-z]+"
)
"""Settings that hold no secret and name no program. Signing is left out: a confined command can't reach the keys."""
_SECONDS: Final = 5.0


def write_git_settings(environ: Mapping[str, str]) -> str | None:
    """Write the settings to a file of the user's cache and return its path; None if there are none."""
    folder = user_directory("cache", environ)
    if folder is None:
        return None
    text = "".join(_line(key, value) for key, value in _global_settings(environ) if PASSED.fullmatch(key))
    if not text:
        return None
    path = os.path.join(folder, "gitconfig")
    try:
        write_atomic(path, text.encode(errors="surrogateescape"), 0o600)
    except OSError:  # without a cache, commits need an identity of their repository
        return None
    return path


def _global_settings(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The keys and values of ~/.gitconfig and $XDG_CONFIG_HOME/git/config, with what they include."""
    passed = {name: environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL") if name in environ}
    command = ["git", "config", "--global", "--includes", "--null", "--list"]
    try:
        done = subprocess.run(
            command,
            env={**STARTER, **passed},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # no git, or no settings
        return []
    entries = done.stdout.decode(errors="surrogateescape").split("\0")
    return [(key, value) for key, newline, value in (entry.partition("\n") for entry in entries) if newline]


def _line(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    header = f'[{section} "{_escape(subsection)}"]' if subsection else f"[{section}]"
    return f'{header}\n\t{name} = "{_escape(value)}"\n'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
