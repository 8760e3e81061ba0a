"""BR-4: what a page can do by uploads, downloads and their names, and what the caller gets of it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from longshore import Client
from longshore.protocol.content import ResourceLink
from longshore.registry.token_budget import count_tokens
from waiting import PATIENCE

from .attacking import answer, ask, assert_alive, attacked, inside, kill_browser

FIELD = "<input type=file id=f><p id=o>-</p>"
NAMES = {
    "../../.bashrc": "bashrc",
    "/etc/cron.d/x": "x",
    "..\\\\..\\\\windows.ini": "windows.ini",
    "a%00b.txt": "",
    "x" * 300 + ".txt": "",
    "a\u202egnp.exe": "",
    "CON": "",
    "%2e%2e%2fup.txt": "",
    "-rf": "",
    ". .": "",
}


async def test_br_4_no_file_outside_the_folders_is_uploaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (tmp_path / "secret").write_text("hunter2")
    (folder / "fine.txt").write_text("fine")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    async with attacked({"/": FIELD}) as (client, site):
        await ask(client, "navigate", url=site.url("/"))
        for path in (
            "../secret",
            str(tmp_path / "secret"),
            "link",
            "out/secret",
            "/etc/passwd",
            "pipe",
            ".",
            "a\0b",
            "",
        ):
            said = await answer(client, "files", paths=["fine.txt", path], selector="#f")
            assert "hunter2" not in said and "Gave" not in said, (path, said)
            assert "0" in inside(await ask(client, "evaluate", script="f.files.length")), path
        assert "Gave 1 file" in await ask(client, "files", paths=["fine.txt"], selector="#f")
        assert '"fine"' in await ask(client, "evaluate", script="f.files[0].text()")


async def test_a_field_that_takes_one_file_gets_no_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(name)
    paths = ["one.txt", "two.txt"]
    async with attacked({"/": "<input type=file id=one><input type=file id=many multiple>"}) as (client, site):
        await ask(client, "navigate", url=site.url("/"))
        assert "this field takes one file, not 2" in await answer(client, "files", paths=paths, selector="#one")
        assert "Gave 2 files" in await answer(client, "files", paths=paths, selector="#many")
        assert "[0,2]" in await ask(client, "evaluate", script="[one.files.length, many.files.length]")


async def links(client: Client) -> list[ResourceLink]:
    got = await client.call_tool("browser_files", {})
    return [each for each in got.content if isinstance(each, ResourceLink)]


async def test_br_4_downloads_get_clean_names_and_are_saved_once() -> None:
    pages = {f"/{n}": f"data {n}" for n in range(len(NAMES))}
    async with attacked(pages) as (client, site):
        await ask(client, "navigate", url=site.url("/fine"))
        for n, (name, expected) in enumerate(NAMES.items()):
            quoted = name.encode().decode("latin-1")
            site.headers[f"/{n}"] = f'content-type: x/y\r\ncontent-disposition: attachment; filename="{quoted}"\r\n'
            said = inside(await ask(client, "navigate", url=site.url(f"/{n}")))
            assert "download" in said and (expected in said), said
        saved = await links(client)
        assert len(saved) == len(NAMES)
        for n, link in enumerate(saved):
            assert "/" not in link.name and link.name[0] not in ".-" and len(link.name) <= 120, link.name
            assert link.name.isascii() and link.name.isprintable(), link.name
            read = await client.read_resource(link.uri)
            assert f"data {n}" in str(read), read
        assert [link.uri for link in await links(client)] == [link.uri for link in saved]
        await ask(client, "close")


async def test_br_4_a_download_that_is_too_large_or_endless_is_ended() -> None:
    async with attacked({"/large": "x" * 3_000_000, "/endless": "y" * 100_000}, max_download_size=2_000_000) as (
        client,
        site,
    ):
        site.endless.add("/endless")
        for path in ("/large", "/endless"):
            site.headers[path] = "content-type: x/y\r\ncontent-disposition: attachment\r\n"
        await ask(client, "navigate", url=site.url("/fine"))
        for path in ("/large", "/endless"):
            said = inside(await ask(client, "navigate", url=site.url(path)))
            assert "refused: it has more than 2,000,000 bytes" in said, said
        assert await links(client) == []
        await assert_alive(client, site)


MANY = """<p>many<script>
let n = 0;
onload = () => setInterval(() => {
  if (n > 150) return;
  const frame = document.createElement("iframe");
  frame.src = "/file?" + n++;
  document.body.append(frame);
}, 5)</script>"""


async def test_br_4_a_page_starts_more_downloads_than_are_kept() -> None:
    async with attacked({"/": MANY, "/file": "x"}) as (client, site):
        site.headers["/file"] = "content-type: x/y\r\ncontent-disposition: attachment; filename=a.txt\r\n"
        said = await ask(client, "navigate", url=site.url("/"))  # each answer can report all the refusals there are
        script = "new Promise((done) => setInterval(() => n > 140 && done(n), 20))"
        said += await ask(client, "evaluate", script=script, timeout_ms=60_000)
        async with asyncio.timeout(PATIENCE):
            while "at most 100 downloads" not in said:
                await asyncio.sleep(0.05)
                said = await ask(client, "evaluate", script="n")
            while len(saved := await links(client)) <= 50:  # the others still run
                await asyncio.sleep(0.05)
        assert len(saved) <= 100
        said = (await client.call_tool("browser_files", {"max_tokens": 300})).text
        assert count_tokens(said) <= 300 and "more" in inside(said), said
        await assert_alive(client, site, (await ask(client, "tabs", action="new")).split()[1])


async def test_a_download_that_a_killed_browser_took_along_is_reported() -> None:
    async with attacked({"/file": "abc"}) as (client, site):
        site.headers["/file"] = "content-type: x/y\r\ncontent-disposition: attachment; filename=a.txt\r\n"
        await ask(client, "navigate", url=site.url("/fine"))
        await ask(client, "navigate", url=site.url("/file"))
        await ask(client, "evaluate", script="1")
        assert len(await links(client)) == 1
        await ask(client, "navigate", url=site.url("/file"))
        kill_browser()
        await answer(client, "evaluate", script="1")
        await assert_alive(client, site)
        got = await client.call_tool("browser_files", {})
        assert "the browser ended" in got.text and len(await links(client)) == 1
