"""The environment of commands: an allow-list of the server's own variables, and settings against pagers and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ALLOWED: Final = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "PYENV_ROOT", "RBENV_ROOT", "NVM_DIR"),
        *("FNM_DIR", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL", "ASDF_DIR", "ASDF_DATA_DIR", "GOROOT"),
        *("MISE_DATA_DIR", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "JAVA_HOME", "SDKMAN_DIR", "UV_PYTHON_INSTALL_DIR"),
        "UV_TOOL_DIR",
    )
)
"""Variables that are passed, with those that begin with LC_. Secrets are in variables of any name, so no others."""
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
"""Passed in upper and lower case to commands with a network, unless they hold a password."""

DISARMED: Final[dict[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    # An editor that changes nothing: `git commit` without a message fails at once instead of waiting for a person.
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_yes": "true",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
    # Python programs print at once, in order with the output of others.
    "PYTHONUNBUFFERED": "1",
}
SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"
"""Where programs are found that run unconfined. In the server's PATH may be folders that commands write to."""
STARTER: Final[dict[str, str]] = {"PATH": SYSTEM_PATH, "LC_ALL": "C"}
"""The environment of the process that confines. A caller's variables, LD_PRELOAD among them, reach the command only."""


def command_environment(
    environ: Mapping[str, str], asked: Mapping[str, str], *, terminal: bool, network: bool
) -> dict[str, str]:
    """The variables of a command: allowed ones of `environ`, settings against prompts, then the caller's."""
    env = {"PATH": SYSTEM_PATH, "TERM": "xterm-256color" if terminal else "dumb"}
    env.update((name, value) for name, value in environ.items() if name in ALLOWED or name.startswith("LC_"))
    if network:
        env.update((name, value) for name, value in environ.items() if name.upper() in PROXIES and "@" not in value)
    return {**env, **DISARMED, **asked}
