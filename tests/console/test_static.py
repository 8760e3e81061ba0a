"""The console's shell and files: types, entity tags, the policy for its content, and no way out of the folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.site import Site
from longshore.transports.http.gate import Denied
from longshore.transports.http.static_files import TYPES, StaticFiles
from serving import Exchange

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; "


def get(site: Site, path: str, *headers: tuple[str, str], method: str = "GET") -> Exchange:
    return site.send(method, path, None, None, *headers).finish()


def names(site: Site) -> list[str]:
    found = sorted(site.console._files._paths)
    assert "index.html" in found
    return found


def test_the_shell_and_every_file_are_served_without_a_token(site: Site) -> None:
    for name in names(site):
        answer = get(site, "/console" if name == "index.html" else f"/console/{name}")
        assert answer.status == 200
        assert answer.type == TYPES[os.path.splitext(name)[1]].decode()
        assert answer.headers["content-security-policy"].startswith(POLICY)
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_shell_has_one_address(site: Site) -> None:
    answer = get(site, "/console/")
    assert (answer.status, answer.headers["location"]) == (308, "/console")


def test_data_are_not_stored_and_have_the_same_policy(site: Site) -> None:
    for answer in (site.get("overview"), site.get("overview", None), site.get("nothing")):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith(POLICY)


def test_a_browser_that_has_the_file_gets_304(site: Site) -> None:
    first = get(site, "/console")
    again = get(site, "/console", ("If-None-Match", first.headers["etag"]))
    assert (again.status, again.body) == (304, b"")
    assert get(site, "/console", ("If-None-Match", f'"x", W/{first.headers["etag"]}')).status == 304
    assert get(site, "/console", ("If-None-Match", '"x"')).status == 200


def test_head_has_the_length_and_no_body(site: Site) -> None:
    whole, head = get(site, "/console"), site.send("HEAD", "/console", None)
    head.begin()
    assert head.headers["content-length"] == str(len(whole.body))
    head.close()


def test_other_methods_are_refused(site: Site) -> None:
    answer = get(site, "/console", method="DELETE")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    answer = site.send("DELETE", "/console/api/overview").finish()
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


@pytest.mark.parametrize(
    "path",
    [
        "/console/../part.py",
        "/console/..%2fpart.py",
        "/console/%2e%2e/part.py",
        "/console/static/../../part.py",
        "/console//etc/passwd",
        "/console/index.html%00.js",
        "/console/..\\part.py",
        "/console/nothing.js",
    ],
)
def test_no_path_leads_out_of_the_folder(site: Site, path: str) -> None:
    assert get(site, path).status in (400, 404)


def test_ranges_are_not_served(site: Site) -> None:
    many = "bytes=" + ",".join(f"{n}-{n}" for n in range(500))
    answer = get(site, "/console", ("Range", many))
    assert answer.status == 200
    assert len(answer.body) == int(answer.headers["content-length"])


def test_paths_beside_the_console_are_not_its_own(site: Site) -> None:
    assert get(site, "/consolex").status in (401, 404)
    assert get(site, "/console/apix").status == 404


async def _load(files: StaticFiles, name: str) -> bytes:
    return files._load(name).body


def test_a_changed_file_is_read_again_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    page = tmp_path / "deep" / "page.js"
    page.write_text("1")
    (tmp_path / "secret.py").write_text("x")
    files = StaticFiles(str(tmp_path), ())
    assert "deep/page.js" in files
    assert "secret.py" not in files, "of a kind that is not served"
    first = files._load("deep/page.js")
    page.write_text("22")
    assert files._load("deep/page.js").etag != first.etag
    page.unlink()
    with pytest.raises(Denied):
        files._load("deep/page.js")
