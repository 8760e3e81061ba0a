"""The files in deploy/: the container file, the unit of systemd, and what reverse proxies are given."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from http_process.serverproc import LONGSHORE, start
from longshore.config.sections import HttpConfig
from posting import call, encode, modern, modern_headers
from services import free_port
from serving import Connection
from waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
BUILD_SECONDS = 1500.0
PORT = HttpConfig().port


# -- the container file


def read_instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a container file, each with its arguments on one line."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    pairs = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [(name, " ".join(rest.split())) for name, _, rest in pairs]


INSTRUCTIONS = read_instructions((DEPLOY / "Containerfile").read_text())


def given(name: str) -> list[str]:
    return [arguments for each, arguments in INSTRUCTIONS if each == name]


def last_stage() -> list[tuple[str, str]]:
    at = max(n for n, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM")
    return INSTRUCTIONS[at:]


def test_the_container_file_has_only_known_instructions() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in INSTRUCTIONS} == known, "ADD, which fetches from the network, is none of them"


def test_the_images_are_debian_slim_with_a_release() -> None:
    assert all(re.fullmatch(r"debian:[a-z]+-slim( AS [a-z]+)?", each) for each in given("FROM")), given("FROM")


def test_the_container_runs_as_a_numbered_user_that_the_image_has() -> None:
    [user] = [arguments for name, arguments in last_stage() if name == "USER"]
    number, _, group = user.partition(":")
    assert int(number) > 0 and int(group) > 0
    assert any(f"useradd --uid {number} " in each for each in given("RUN"))
    assert [name for name, _ in last_stage()].index("USER") < [name for name, _ in last_stage()].index("CMD")


def test_only_package_managers_fetch_in_the_build() -> None:
    for each in given("RUN"):
        assert not re.search(r"\b(curl|wget|git clone|http)\b", each), each
        assert "apt-get install" not in each or "--no-install-recommends" in each
    assert any("pip install --no-cache-dir --require-hashes" in each for each in given("RUN"))


def test_the_image_has_what_the_tools_need() -> None:
    [packages] = [arguments for name, arguments in last_stage() if name == "RUN"]
    assert {"chromium", "bubblewrap", "ripgrep", "python3"} <= set(packages.split())


def test_what_the_build_copies_is_there() -> None:
    for each in given("COPY"):
        sources = [word for word in each.split() if not word.startswith("--")][:-1]
        assert each.startswith("--from=build ") or all((ROOT / source).exists() for source in sources), each


def test_the_command_serves_on_the_exposed_port_and_the_health_check_finds_it(tmp_path: Path) -> None:
    [entry], [command], [health] = given("ENTRYPOINT"), given("CMD"), given("HEALTHCHECK")
    assert json.loads(entry) == ["longshore"] and given("EXPOSE") == [str(PORT)]
    argv = [str(tmp_path) if word == "/work" else word for word in json.loads(command)]
    [check] = re.findall(r"CMD (\[.*\])$", health)
    program, *words = json.loads(check)
    assert program == "python3" and f":{PORT}/health" in words[-1]
    port = free_port()
    words[-1] = words[-1].replace(f":{PORT}/", f":{port}/")

    def ask() -> int:
        return subprocess.run([sys.executable, *words], stderr=subprocess.DEVNULL, timeout=PATIENCE).returncode

    assert ask() == 1
    with start(None, argv=(*LONGSHORE, *argv), env={"LONGSHORE_HTTP_PORT": str(port)}):
        assert ask() == 0


@pytest.mark.timeout(int(2 * BUILD_SECONDS))
def test_the_image_is_built_and_its_programs_run() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, timeout=PATIENCE).returncode:
        pytest.skip("no docker daemon answers; the tests above read the container file")
    build = [docker, "build", "-q", "-f", str(DEPLOY / "Containerfile"), str(ROOT)]
    image = subprocess.run(build, check=True, stdout=subprocess.PIPE, text=True, timeout=BUILD_SECONDS).stdout.strip()
    script = "id -u; command -v chromium bwrap rg; longshore --version; longshore tools --json >/dev/null && echo tools"
    run = [docker, "run", "--rm", "--init", "--network", "none", "--entrypoint", "sh", image, "-c", script]
    try:
        done = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE)
    finally:
        subprocess.run([docker, "image", "rm", "-f", image], check=True, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "10001" and done.stdout.splitlines()[-1] == "tools", done.stdout
    assert all(f"/{name}\n" in done.stdout for name in ("chromium", "bwrap", "rg"))


# -- the unit of systemd


UNIT = (DEPLOY / "longshore.service").read_text()


def settings(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z]+)=(.*)$", text, re.MULTILINE))


def test_the_service_is_confined_as_far_as_its_tools_allow() -> None:
    found = settings(UNIT)
    assert found["User"] not in ("", "root", "0")
    on = ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictSUIDSGID", "LockPersonality")
    assert {name: found.get(name) for name in on} == dict.fromkeys(on, "yes")
    assert (found["ProtectSystem"], found["CapabilityBoundingSet"]) == ("strict", "")
    # each of these ends Chromium or bubblewrap: see the comment in the unit
    broken = {"RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset"}
    assert not {*broken, "MemoryDenyWriteExecute", "SystemCallFilter", "ProtectControlGroups"} & set(found)


def test_the_service_starts_what_the_page_installs() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    argv = settings(UNIT)["ExecStart"].split()
    assert f"python3 -m venv {Path(argv[0]).parents[1]}\n" in page and f"{settings(UNIT)['User']}\n" in page
    assert argv[1:] == ["serve", "--http", "--root", settings(UNIT)["WorkingDirectory"]]
    home = settings(UNIT)["Environment"].split()[0].removeprefix("HOME=")
    assert f"--home-dir {home} " in page and f"{home}/.local/state/longshore/http/token\n" in page


def test_systemd_finds_no_fault_in_the_service(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here; the tests above read the unit")
    unit = tmp_path / "longshore.service"
    program = settings(UNIT)["ExecStart"].split()[0]
    unit.write_text(UNIT.replace(program, sys.executable))  # it has to be there

    def verify() -> tuple[int, str]:
        argv = [analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stderr

    assert verify() == (0, "")
    unit.write_text(unit.read_text().replace("ProtectSystem=", "ProtectSystm="))
    assert verify()[0] == 1


# -- reverse proxies


def nginx(folder: Path, port: int, upstream: int) -> list[str]:
    site = (DEPLOY / "nginx.conf").read_text().replace(f":{PORT}", f":{upstream}")
    plain = re.sub(r" +ssl_.*\n", "", site).replace("443 ssl", f"127.0.0.1:{port}").replace("mcp.example.com", "_")
    (folder / "site.conf").write_text(plain)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    http = f"http {{ access_log off; {paths} include {folder}/site.conf; }}"
    (folder / "nginx.conf").write_text(f"daemon off; master_process off; pid {folder}/pid; events {{}} {http}")
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, upstream: int) -> list[str]:
    site = (DEPLOY / "Caddyfile").read_text().replace(f":{PORT}", f":{upstream}")
    site = site.replace("mcp.example.com", f"http://127.0.0.1:{port}")
    (folder / "Caddyfile").write_text("{\n    admin off\n}\n" + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@contextmanager
def running(argv: list[str], folder: Path, port: int) -> Iterator[None]:
    """A proxy that takes connections."""
    env = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def up() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return False
        return True

    try:
        eventually("the proxy", up)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


STREAMING = """
    import asyncio
    from pathlib import Path
    from longshore import Context, Server

    app = Server("streaming")

    @app.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(1, 2, "begun")
        while not Path("go").exists():
            await asyncio.sleep(0.01)
        return "done"
"""


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_a_stream_passes_the_proxy_while_it_is_written(tmp_path: Path, proxy: Any) -> None:
    if shutil.which(proxy.__name__) is None:
        pytest.skip(f"{proxy.__name__} is missing (apt-get install {proxy.__name__})")
    own, front = free_port(), free_port()
    flags = ("--port", str(own), "--public-url", f"http://127.0.0.1:{front}")
    (tmp_path / "proxy").mkdir()
    argv = proxy(tmp_path / "proxy", front, own)
    with start(STREAMING, *flags, folder=tmp_path), running(argv, tmp_path / "proxy", front):
        message = modern(call("work", {}, progressToken=1))
        connection = Connection(front)
        exchange = connection.send("POST", "/mcp", modern_headers(message), encode(message))
        exchange.wait(lambda it: b"begun" in it.body, "the progress, while the call runs")
        (tmp_path / "go").touch()
        assert b"done" in exchange.finish().body
        connection.close()


def test_the_page_shows_the_files() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    for name in ("nginx.conf", "Caddyfile"):
        assert f"\n{(DEPLOY / name).read_text()}```\n" in page, name
