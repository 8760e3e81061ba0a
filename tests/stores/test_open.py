"""Which store a URL names, and what is said about one that names none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.errors import ConfigError
from longshore.stores import open_store
from longshore.stores.memory import MemoryStore
from longshore.stores.sqlite import SqliteStore

from .place import run


def error_of(url: str) -> str:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    return str(caught.value)


@pytest.mark.parametrize("url", ["memory://", "memory:", "MEMORY:///"])
def test_memory_is_the_store_of_one_process(url: str) -> None:
    assert isinstance(open_store(url), MemoryStore)


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("sqlite:///{here}", "relative.db"),
        ("sqlite:///{here}", "./a/b/deep.db"),
        ("sqlite:///{here}", "with%20blank.db"),
        ("SQLite:///{here}", "upper.db"),
    ],
)
def test_a_sqlite_url_may_be_relative(form: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(form.format(here=path))
    assert isinstance(store, SqliteStore)
    assert list(tmp_path.iterdir()) == []  # not before it is used
    monkeypatch.chdir("/")  # and no longer relative to what comes later
    run(use(store))
    assert (tmp_path / path.replace("%20", " ")).is_file()


def test_a_sqlite_url_may_name_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(use(open_store(f"sqlite:///{tmp_path}/absolute.db")))
    assert (tmp_path / "absolute.db").is_file()
    monkeypatch.setenv("HOME", str(tmp_path))
    run(use(open_store("sqlite:///~/at-home.db")))
    assert (tmp_path / "at-home.db").is_file()


async def use(store: SqliteStore) -> None:
    await store.check()
    await store.close()


@pytest.mark.parametrize(
    "url",
    ["sqlite:", "sqlite://", "sqlite:///", "sqlite://file.db", "sqlite:file.db", "sqlite:///a/", "sqlite:///a?b=c"],
)
def test_a_sqlite_url_without_a_file_is_refused(url: str) -> None:
    assert error_of(url) == ("store: a SQLite URL names a file: sqlite:///relative/path or sqlite:////absolute/path")


def test_a_sqlite_url_in_memory_is_refused() -> None:
    assert error_of("sqlite:///:memory:") == "store: an SQLite in memory is not shared; write memory://"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("reddis://u:hunter2@h", "no store is called 'reddis'"),
        ("postgres://u:hunter2@h", "no store is called 'postgres'"),
        ("", "no store is called ''"),
        ("/var/lib/x.db", "no store is called '/var/lib/x.db'"),
        ("x" * 500, "no store is called 'xxxxxxxxxxxxxxxxxxx…'"),
        ("\x1b[31m://", "no store is called '\\x1b[31m'"),
        ("memory", "begins with 'memory' but has not its form"),
        ("memory://host", "begins with 'memory' but has not its form"),
        ("redis:hunter2", "begins with 'redis' but has not its form"),
    ],
)
def test_urls_of_unknown_schemes_are_refused(url: str, said: str) -> None:
    text = error_of(url)
    assert said in text
    assert "memory://, sqlite:///path or redis://host" in text
    assert "hunter2" not in text


def test_the_nearest_is_suggested() -> None:
    assert error_of("reddis://h").endswith("did you mean redis://?")
    assert error_of("sqllite:///x").endswith("did you mean sqlite://?")
    assert "did you mean" not in error_of("postgres://h")


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:hunter2@host:port",
        "redis://u:hunter2@host:99999",
        "redis://u:hunter2#x@host:6379",
        "redis://u:hunter2@[::1",
        "redis://u:hunter2@host/sessions",
        "redis://u:hunter2@host?no_such_option=1",
        "rediss://u:hunter2@host?ssl_ca_certs=/none&nonsense=2",
    ],
)
def test_the_error_for_a_malformed_redis_url_hides_the_password(url: str) -> None:
    text = error_of(url)
    assert text.startswith("store: this URL of Redis can't be read; write redis://")
    assert "hunter2" not in text


@pytest.mark.parametrize("url", ["redis://", "redis://host", "rediss://u:p@host:1/2", "redis://[::1]:6379?db=3"])
def test_redis_is_not_connected_to_before_it_is_used(url: str) -> None:
    assert open_store(url).shared is True


def test_without_the_redis_package_the_fix_is_named() -> None:
    code = (
        "import sys; sys.modules['redis'] = None\n"
        "from longshore.stores import open_store\n"
        "from longshore.errors import ConfigError\n"
        "try: open_store('redis://h')\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, env=os.environ)
    assert done.stdout.strip() == "store: Redis needs the redis package:  pip install 'longshore[redis]'", done.stderr


def test_memory_and_sqlite_import_no_redis() -> None:
    code = (
        "import sys; from longshore.stores import open_store\n"
        "assert 'sqlite3' not in sys.modules and 'asyncio' not in sys.modules\n"
        "open_store('memory://'); assert 'sqlite3' not in sys.modules\n"
        "open_store('sqlite:///x'); assert 'redis' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, env=os.environ)
    assert done.returncode == 0, done.stderr
