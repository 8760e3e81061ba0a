"""Passwords: neither the value of a field nor an address that a form makes of it is in an answer."""

from __future__ import annotations

import re

import pytest

from longshore.toolsets.browser.events import MOST_SECRETS, TabLog

from .test_tools import ask, browsing, refusal

SECRET = "hunter2! &ü"
LOGIN = """<title>Login</title><form action="/in"><input name=u aria-label=User>
<input name=pw type=password aria-label=Password><button>Log in</button></form>"""
INSIDE = """<title>Inside</title><script src="/missing.js"></script><script>console.error('careful')</script>
<iframe src="/frame"></iframe><button onclick="location.hash = 'x'">Move</button>"""
DOTTED = """<title>Dotted</title><style>input, textarea { -webkit-text-security: disc }</style>
<input aria-label=Key value=topsecret><textarea aria-label=Note>topsecret</textarea>"""
PAGES = {"/login": LOGIN, "/in": INSIDE, "/frame": "<p>framed", "/dotted": DOTTED}


async def test_a_password_that_a_form_sends_in_its_address_is_masked() -> None:
    async with browsing() as (client, site):
        site.pages.update(PAGES)
        await ask(client, "navigate", url=site.url("/login"))
        fields = [{"label": "User", "value": "ann"}, {"label": "Password", "value": SECRET}]
        said = [await ask(client, "fill", fields=fields, submit=True)]
        assert f"now at {site.url('/in')}?u=ann&pw=••••\n" in said[0]
        for name in ("network", "console", "read", "snapshot", "tabs"):
            said.append(await ask(client, name))
        said += [await ask(client, "network", id=number) for number in (1, 2, 3, 4)]
        said.append(await ask(client, "click", text="Move"))
        said.append(await refusal(client, "wait", url="/elsewhere", timeout_ms=300))
        said.append(await ask(client, "navigate", action="reload"))
        assert not [each for each in said if "hunter2" in each]
        assert "hunter2" in await ask(client, "evaluate", script="location.href")  # what the script asked for


@pytest.mark.parametrize("action", [{"action": "press", "value": "Enter"}, {"action": "fill", "value": "4711"}])
async def test_a_password_that_a_step_enters_is_masked(action: dict[str, str]) -> None:
    async with browsing() as (client, site):
        site.pages.update(PAGES)
        await ask(client, "navigate", url=site.url("/login"))
        steps = [{"action": "fill", "label": "Password", "value": 4711}, {**action, "label": "Password"}]
        await ask(client, "act", steps=steps)
        said = await ask(client, "click", text="Log in") if action["action"] == "fill" else await ask(client, "tabs")
        assert "pw=••••" in said and "4711" not in re.sub(r":\d+/", "/", said)


async def test_a_password_that_a_form_sends_to_a_new_tab_is_masked() -> None:
    async with browsing() as (client, site):
        site.pages.update({**PAGES, "/login": LOGIN.replace("<form", "<form target=_blank")})
        await ask(client, "navigate", url=site.url("/login"))
        fields = [{"label": "User", "value": "ann"}, {"label": "Password", "value": SECRET}]
        said = await ask(client, "fill", fields=fields, submit=True)
        assert f"opened tab t2 ({site.url('/in')}?u=ann&pw=••••)" in said
        assert "hunter2" not in said + await ask(client, "tabs") + await ask(client, "network", tab_id="t2")


async def test_the_user_and_password_of_an_address_are_not_shown() -> None:
    async with browsing() as (client, site):
        site.pages.update(PAGES)
        secret = "http://ann:s3cret@127.0.0.1"
        said = [await ask(client, "navigate", url=f"{secret}:{site.port}/in")]
        said.append(await refusal(client, "navigate", url=f"{secret}:1/"))
        said += [await ask(client, "network"), await ask(client, "tabs"), await ask(client, "console")]
        assert not [each for each in said if "s3cret" in each]


async def test_a_field_that_shows_dots_by_its_style_is_a_password() -> None:
    async with browsing() as (client, site):
        site.pages.update(PAGES)
        said = [await ask(client, "navigate", url=site.url("/dotted"))]
        assert "textbox Key = ••••" in said[0] and "textbox Note = ••••" in said[0]
        said += [await ask(client, "read", format=each) for each in ("markdown", "text", "html")]
        said.append(await ask(client, "find", text="topsecret"))
        assert not [each for each in said if "topsecret" in each]


def test_only_whole_parameters_with_a_secret_are_masked() -> None:
    log = TabLog()
    log.add_secret("a b")
    log.add_secret("1")
    address = "http://h/1?x=1&y=11&z=a+b&w=a%20b#k=1 at http://u:p@h/?q=%31"
    assert log.mask(address) == "http://h/1?x=••••&y=11&z=••••&w=••••#k=•••• at http://h/?q=••••"
    assert log.opened().mask("http://h/?x=1") == "http://h/?x=••••"


@pytest.mark.parametrize(("others", "is_masked"), [(MOST_SECRETS - 1, True), (MOST_SECRETS, False)])
def test_the_oldest_secrets_are_forgotten(others: int, is_masked: bool) -> None:
    log = TabLog()
    for n in range(others + 1):
        log.add_secret(f"secret{n}")
    assert (log.mask("http://h/?a=secret0") == "http://h/?a=••••") is is_masked
