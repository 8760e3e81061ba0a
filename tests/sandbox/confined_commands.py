"""Commands in a sandbox, started as the terminal starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from longshore.sandbox.launch import Launch, Level, Limits
from longshore.sandbox.levels import Sandbox, make_sandbox
from longshore.sandbox.mechanisms import HostMechanisms, detect_host

SECONDS = 60.0
PYTHON = os.path.realpath(sys.executable)
MECHANISMS = ("bubblewrap", "landlock")
LIMITED = (("limits", "landlock"), ("workspace", "bubblewrap"), ("workspace", "landlock"))
"""Levels and mechanisms by which a command is bounded: by the launcher alone, and by each that confines."""
STARTS = (("none", "landlock"), *LIMITED)
"""Every way in which a command is started."""
SECRET = "for nobody else's eyes"
BYPASSES = {
    "quotes": "r''m -rf sources",
    "substitution": "$(printf rm) -rf sources",
    "busybox": "busybox rm -rf sources",
    "python": f"{PYTHON} -c 'import shutil; shutil.rmtree(\"sources\")'",
    "env": "env rm -rf sources",
    "path": "/bin/../bin/rm -rf sources",
    "alias": "alias list=rm; eval 'list -rf sources'",
    "base64": 'bash -c "$(echo cm0gLXJmIHNvdXJjZXM= | base64 -d)"',
    "find": "find sources -delete; find sources -exec rm -rf {} +",
    "perl": 'perl -e \'unlink glob "sources/*"; rmdir "sources"\'',
    "variable": "a=r; b=m; $a$b -rf sources; IFS=,; c='rm,-rf,sources'; $c",
    "overwriting": "cp /dev/null sources/main.c; true > sources/main.c; dd if=/dev/zero of=sources/main.c count=1;"
    " truncate -s 0 sources/main.c; mv sources gone; chmod 0 sources/main.c; tee sources/main.c < /dev/null",
}
"""Ways around a list of forbidden words, for deleting or changing the folder `sources`."""


class Done(NamedTuple):
    """How a command ended, with what it wrote to both outputs."""

    code: int
    text: str


def host_with(mechanism: str) -> HostMechanisms:
    """This machine, with one of the two ways of confining."""
    host = detect_host()
    assert not isinstance(host.bubblewrap, str), f"install bubblewrap: {host.bubblewrap}"
    return host if mechanism == "bubblewrap" else replace(host, bubblewrap="switched off")


class Place:
    """A project, the user's home folder with secrets, and another project; and commands that run in the project."""

    def __init__(self, folder: Path) -> None:
        self.home, self.root, self.other = folder / "home", folder / "home" / "work" / "project", folder / "other"
        for path in (self.home / ".ssh" / "id_ed25519", self.home / "work" / "notes" / "plan", self.other / "plan"):
            path.parent.mkdir(parents=True)
            path.write_text(SECRET)
        self.root.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def sandbox(
        self,
        level: Level = "workspace",
        mechanism: str = "bubblewrap",
        limits: Limits = Limits(),  # noqa: B008 - a frozen record
        host: HostMechanisms | None = None,
        read_paths: Sequence[str] = (sys.base_prefix,),
    ) -> Sandbox:
        host = host or host_with(mechanism)
        return make_sandbox(level, limits=limits, environ=self.environ, host=host, read_paths=read_paths)

    def launch(self, sandbox: Sandbox, *argv: str, terminal: bool = False, **env: str) -> Launch:
        root = str(self.root)
        return sandbox.launch(argv, cwd=root, env=env, roots=[root], name="test", terminal=terminal)

    def run(self, sandbox: Sandbox, *argv: str, **env: str) -> Done:
        with self.launch(sandbox, *argv, **env) as launch, start(launch) as process:
            output, _ = process.communicate(timeout=SECONDS)
        return Done(process.returncode, output.decode(errors="replace"))

    def shell(self, sandbox: Sandbox, script: str, **env: str) -> Done:
        return self.run(sandbox, "/bin/sh", "-c", script, **env)

    def python(self, sandbox: Sandbox, source: str, *argv: str) -> Done:
        return self.run(sandbox, PYTHON, "-I", "-c", source, *argv)

    def tree(self) -> dict[str, bytes]:
        """Every file outside of the sandbox's own folders."""
        return {str(path): path.read_bytes() for path in self.home.parent.rglob("*") if path.is_file()}


def start(launch: Launch, output: int = subprocess.PIPE, user: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        launch.argv,
        env=launch.env,
        cwd=launch.cwd,
        pass_fds=launch.pass_fds,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
