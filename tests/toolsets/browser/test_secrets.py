"""Passwords: neither the value of a field nor an address that a form makes of it is in an answer."""

from __future__ import annotations

import re

import pytest

from longshore.toolsets.browser.events import TabLog
from longshore.toolsets.browser.masking import LEAST_MASKED, MOST_SECRETS, Secrets

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
        said.append(await ask(client, "evaluate", script="location.href"))
        assert not [each for each in said if "hunter2" in each]


ECHO = """<title>Echo</title><input id=p type=password aria-label=Password><p id=o></p><script>
function show() {
  console.log("typed", p.value); o.textContent = document.title = p.value; alert(p.value);
}</script><button onclick="show()">Show</button><button onclick="throw p.value">Throw</button>"""


async def test_a_password_that_the_page_repeats_is_masked_in_all_answers() -> None:
    async with browsing() as (client, site):
        site.pages["/echo"] = ECHO
        await ask(client, "navigate", url=site.url("/echo"))
        await ask(client, "fill", fields=[{"label": "Password", "value": 'hunter"22'}])
        said = [await ask(client, "click", text="Show")]
        assert "title '••••'" in said[0] and 'alert "••••"' in said[0] and "\n+ > ••••\n" in said[0]
        said += [await ask(client, name) for name in ("console", "snapshot", "read", "tabs")]
        assert all("••••" in each for each in said)
        said.append(await ask(client, "read", format="html"))
        said.append(await ask(client, "find", text="hunter"))
        said.append(await ask(client, "evaluate", script="[p.value]"))
        said.append(await ask(client, "click", text="Throw"))
        said.append(await refusal(client, "evaluate", script="throw new Error(p.value)"))
        said.append(await ask(client, "tabs", action="new", url=site.url("/")))
        said.append(await ask(client, "navigate", action="reload", tab_id="t1"))
        for name, arguments in (
            ("execute_script", {"script": "[{a: p.value = 'hunter' + String.fromCharCode(34) + '22'}]"}),
            ("get_text_content", {"selector": "body"}),
            ("list_active_browsers", {}),
            ("browser", {"url": site.url("/echo")}),
        ):
            said.append((await client.call_tool(name, arguments)).text)
        assert not [each for each in said if "hunter" in each]


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
    log.secrets.add("a b")
    log.secrets.add("1")
    address = "http://h/1?x=1&y=11&z=a+b&w=a%20b#k=1 at http://u:p@h/?q=%31"
    assert log.mask(address) == "http://h/1?x=••••&y=11&z=••••&w=••••#k=•••• at http://h/?q=••••"


@pytest.mark.parametrize(("others", "is_masked"), [(MOST_SECRETS - 1, True), (MOST_SECRETS, False)])
def test_the_oldest_secrets_are_forgotten(others: int, is_masked: bool) -> None:
    secrets = Secrets()
    for n in range(others + 1):
        secrets.add(f"secret-{n}-")
    assert (secrets.mask_parameters("http://h/?a=secret-0-") == "http://h/?a=••••") is is_masked
    assert (secrets.mask("secret-0-") == "••••") is is_masked


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "hunter2! &amp;ü",
        "hunter2%21+%26%C3%BC",
        "hunter2!%20%26%C3%BC",
    ],
)
def test_a_secret_is_masked_however_a_text_has_it(text: str) -> None:
    secrets = Secrets()
    secrets.add(SECRET)
    assert secrets.mask(f"x{text}y") == "x••••y"


@pytest.mark.parametrize(("length", "is_masked"), [(LEAST_MASKED - 1, False), (LEAST_MASKED, True)])
def test_a_short_secret_is_left_in_texts(length: int, is_masked: bool) -> None:
    secrets = Secrets()
    secrets.add("x" * length)
    assert (secrets.mask("x" * length) == "••••") is is_masked
