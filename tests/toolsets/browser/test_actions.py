"""Steps in a page: mouse, keys, forms, files, frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.toolsets.browser.browsing import Site, browse

from counts import count
from longshore.errors import ToolError
from longshore.toolsets.browser.actions import (
    Click,
    Drag,
    ElementTarget,
    Field,
    Fill,
    Hover,
    Point,
    Press,
    Scroll,
    Select,
    Type,
    Upload,
    Wait,
)
from longshore.toolsets.browser.browser import Browser
from longshore.toolsets.browser.keys import press_events, type_events

FORM = """<title>form</title><form action="/sent"><label>Name <input id=n name=n></label>
<label>Mail <input id=m type=email></label><label>Terms <input type=checkbox id=t></label>
<label>Size <select id=s><option value=s>Small<option value=l>Large</select></label><button>Send</button></form>
<p id=o>-</p>"""
MOUSE = """<body style="margin:0"><div id=d style="height:200px;width:200px;background:#eee">pad</div>
<p id=o>-</p><div style="height:3000px"></div><button id=far onclick="o.textContent='far'">Far</button><script>
const say = (e) => { o.textContent = [e.type, e.button, e.detail, e.shiftKey].join() };
for (const type of ['click', 'dblclick', 'contextmenu', 'auxclick']) d.addEventListener(type, say);
d.addEventListener('mouseenter', () => { d.title = 'in' });
let from; d.addEventListener('mousedown', (e) => { from = e.clientX });
addEventListener('mouseup', (e) => { d.lang = (e.clientX - from) + ',' + e.clientY });</script>"""
KEYS = """<input id=i value="old text"><p id=o></p><script>
i.addEventListener('keydown', (e) => { o.textContent += [e.key, e.code, e.keyCode, e.ctrlKey] + ' ' })</script>"""
FILES = """<label>File <input type=file id=f onchange="o.textContent=f.files[0].name"></label>
<button id=b onclick="f.click()">Choose</button><button id=x>none</button><p id=o>-</p>"""
INNER = """<body style="margin:0"><div style="height:900px"></div>
<button id=k onclick="this.textContent='hit'">in</button><label>Inner <input id=i></label>"""
NEST = """<h1>x</h1><iframe id=a style="border:7px solid;margin:30px" width=300 height=200
src="http://localhost:PORT/inner"></iframe><iframe id=b width=400 height=300 src="/middle"></iframe>"""
SHADOW = """<div id=host></div><p id=o>-</p><script>
const outer = host.attachShadow({mode: "open"});
outer.innerHTML = "<label>Name <input></label><div id=inner></div>";
const inner = outer.getElementById("inner").attachShadow({mode: "open"});
inner.innerHTML = "<button>Deep</button>";
inner.querySelector("button").onclick = () => { o.textContent = outer.querySelector("input").value };</script>"""
SUGGESTING = """<input id=i FIELD aria-label=City aria-controls=list><ul id=list role=listbox></ul><p id=o>-</p><script>
let timer;
i.oninput = () => { clearTimeout(timer); timer = setTimeout(async () => {
  const cities = await (await fetch('/cities?' + i.value)).json();
  list.innerHTML = cities.filter((x) => x.startsWith(i.value)).map((x) => `<li role=option>${x}</li>`).join('');
  for (const x of list.children) x.onclick = () => { o.textContent = 'chose ' + x.textContent; list.innerHTML = '' };
}, 200) };</script>"""
PAGES = {
    "/cities": '["London", "Londonderry", "Rome"]',
    "/combobox": SUGGESTING.replace("FIELD", "role=combobox aria-autocomplete=list"),
    "/completed": SUGGESTING.replace("FIELD", "aria-autocomplete=list"),
    "/form": FORM,
    "/shadow": SHADOW,
    "/sent": "<title>sent</title>",
    "/mouse": MOUSE,
    "/keys": KEYS,
    "/files": FILES,
    "/inner": INNER,
    "/middle": "<p>middle</p><iframe width=300 height=150 src='/inner'></iframe>",
    "/nest": NEST,
    "/late": "<p id=o>soon</p><button disabled id=b onclick='o.textContent=\"pressed\"'>Go</button><script>"
    "setTimeout(() => { b.disabled = false; o.textContent = 'now' }, 400)</script>",
}


def test_a_form_is_filled_in_one_step_and_submitted() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/form"))
        outcome = await tab.act(
            Fill(
                fields=[
                    Field(target=ElementTarget(label="Name"), value="Ada"),
                    Field(target=ElementTarget(selector="#m"), value="a@b.c"),
                    Field(target=ElementTarget(label="Terms"), value=True),
                ]
            ),
            Select(target=ElementTarget(selector="#s"), values=["Large"]),
        )
        assert "Filled" in outcome.line
        assert await tab.evaluate("[n.value, m.value, t.checked, s.value]") == '["Ada","a@b.c",true,"l"]'
        with pytest.raises(ToolError, match=r"Small.*Large"):
            await tab.act(Select(target=ElementTarget(selector="#s"), values=["Huge"]))
        outcome = await tab.act(Fill(fields=[Field(target=ElementTarget(label="Name"), value="Bob")], submit=True))
        assert outcome.url == site.url("/sent?n=Bob")
        assert outcome.title == "sent"

    browse(PAGES, work)


@pytest.mark.parametrize("path", ["/combobox", "/completed"])
def test_a_suggestion_that_the_page_fetches_later_is_chosen(path: str) -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.delays["/cities"] = 0.4
        tab = await browser.new_tab(site.url(path))
        outcome = await tab.act(Fill(fields=[Field(target=ElementTarget(label="City"), value="London")]))
        assert "> chose London" in outcome.diff
        outcome = await tab.act(Fill(fields=[Field(target=ElementTarget(label="City"), value="Lond")]))
        assert "option Londonderry" in outcome.diff and "chose" not in outcome.diff

    browse(PAGES, work)


def test_the_mouse_clicks_with_buttons_counts_and_modifiers() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/mouse"))
        pad = ElementTarget(selector="#d")
        for step, seen in (
            (Click(target=pad), "click,0,1,false"),
            (Click(target=pad, count=2), "dblclick,0,2,false"),
            (Click(target=pad, button="right"), "auxclick,2,"),
            (Click(target=pad, button="middle"), "auxclick,1,"),
            (Click(target=pad, modifiers=["Shift"]), "click,0,1,true"),
            (Click(target=Point(20, 20)), "click,0,1,false"),
        ):
            await tab.act(step)
            assert seen in await tab.evaluate("o.textContent")
        await tab.act(Hover(target=pad))
        assert await tab.evaluate("d.title") == '"in"'
        await tab.act(Drag(target=Point(50, 50), to=Point(150, 120)))
        assert await tab.evaluate("d.lang") == '"100,120"'
        await tab.act(Click(target=ElementTarget(text="Far")))
        assert await tab.evaluate("o.textContent") == '"far"'
        await tab.act(Scroll(y=-10_000))
        assert await tab.evaluate("scrollY") == "0"
        await tab.act(Scroll(target=ElementTarget(selector="#far")))
        assert await tab.evaluate("scrollY > 1000") == "true"
        with pytest.raises(ToolError, match="1 to 3"):
            await tab.act(Click(target=pad, count=4))
        with pytest.raises(ToolError, match="exactly one"):
            await tab.act(Click(target=ElementTarget()))

    browse(PAGES, work)


def test_keys_reach_the_page_with_their_codes() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/keys"))
        field = ElementTarget(selector="#i")
        await tab.act(Press(keys=["Control+A", "Backspace"], target=field))
        assert await tab.evaluate("i.value") == '""'
        seen = await tab.evaluate("o.textContent")
        assert "Control,ControlLeft,17,true" in seen
        assert "a,KeyA,65,true" in seen
        await tab.act(Type(text="Hi! é 漢", target=field))
        assert await tab.evaluate("i.value") == '"Hi! é 漢"'
        await tab.act(Press(keys=["ArrowLeft", "x"]))
        assert await tab.evaluate("i.value") == '"Hi! é x漢"'
        with pytest.raises(ToolError, match="did you mean Enter"):
            await tab.act(Press(keys=["Entr"]))

    browse(PAGES, work)


def test_key_events_are_down_and_up_in_order() -> None:
    kinds = [(params["type"], params["key"], params["modifiers"]) for _, params in press_events("Control+Shift+K")]
    assert kinds == [
        ("rawKeyDown", "Control", 2),
        ("rawKeyDown", "Shift", 10),
        ("rawKeyDown", "K", 10),
        ("keyUp", "K", 10),
        ("keyUp", "Shift", 2),
        ("keyUp", "Control", 0),
    ]
    assert press_events("+")[0][1]["code"] == "Equal"
    assert press_events("Control++")[1][1]["key"] == "+"
    assert [params.get("text") for _, params in type_events("A\n")] == ["A", None, "\r", None]


def test_files_go_to_fields_and_to_file_dialogs(tmp_path: Path) -> None:
    async def work(browser: Browser, site: Site) -> None:
        path = tmp_path / "a.txt"
        path.write_text("x")
        tab = await browser.new_tab(site.url("/files"))
        await tab.act(Upload(paths=[str(path)], target=ElementTarget(selector="#f")))
        assert await tab.evaluate("o.textContent") == '"a.txt"'
        await tab.evaluate("f.value = '', o.textContent = '-'")
        await tab.act(Upload(paths=[str(path)], target=ElementTarget(selector="#b")))
        assert await tab.evaluate("o.textContent") == '"a.txt"'
        await tab.evaluate("f.value = '', o.textContent = '-'")
        outcome = await tab.act(Click(target=ElementTarget(selector="#b")))
        assert any("asks for files" in event for event in outcome.events)
        with pytest.raises(ToolError, match="takes one file"):
            await tab.act(Upload(paths=[str(path), str(path)]))
        await tab.act(Click(target=ElementTarget(selector="#b")), Upload(paths=[str(path)]))
        assert await tab.evaluate("o.textContent") == '"a.txt"'
        with pytest.raises(ToolError, match="no file dialog is open"):
            await tab.act(Upload(paths=[str(path)]))

    browse(PAGES, work)


def test_a_click_waits_until_a_new_process_of_a_frame_gets_input() -> None:
    async def work(browser: Browser, site: Site) -> None:
        for _ in range(count(5)):
            tab = await browser.new_tab(site.url("/nest"))
            for line in (await tab.snapshot()).lines:
                if line.text.endswith(" button in"):
                    assert "hit" in (await tab.act(Click(target=ElementTarget(ref=line.ref)))).diff
            await browser.close_tab(tab.id)

    browse(PAGES, work)


def test_elements_in_frames_of_other_processes_are_clicked_and_filled() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/nest"))
        snapshot = await tab.snapshot()
        refs = [line.ref for line in snapshot.lines if line.text.endswith(" button in")]
        assert len(refs) == 2, [line.text for line in snapshot.lines]
        assert len(set(refs)) == 2
        for n, ref in enumerate(refs, 1):
            outcome = await tab.act(Click(target=ElementTarget(ref=ref)))
            assert "hit" in outcome.diff, n
        fields = [line.ref for line in (await tab.snapshot()).lines if "Inner" in line.text and line.ref]
        for ref in fields:
            await tab.act(Type(text="typed", target=ElementTarget(ref=ref)))
        texts = [line.text for line in (await tab.snapshot()).lines]
        assert sum(text.endswith(" = typed") for text in texts) == 2, texts

    browse(PAGES, work)


def test_an_element_is_waited_for_and_waits_are_bounded() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/late"))
        assert "pressed" in (await tab.act(Click(target=ElementTarget(selector="#b")))).diff
        await tab.reload()
        await tab.act(Wait(text="now"))
        await tab.act(Wait(text_gone="soon", expression="o.textContent == 'now'", url="/late", idle=True))
        with pytest.raises(ToolError, match='"never" is not there'):
            await tab.act(Wait(text="never", seconds=0.3))

    browse(PAGES, work)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("(() => { for (;;); })()", "waited 0.5 s, and the expression has not ended"),
        ("new Promise(() => 0)", "waited 0.5 s, and the expression has not ended"),
        ("setTimeout(() => location.reload()), new Promise(() => 0)", "waited 0.5 s, and the expression has not ended"),
        ("window.n = (window.n ?? 0) + 1, n > 1 ? new Promise(() => 0) : false", "the expression is not true"),
        ("o.missing.name", "the script failed at line 1: TypeError"),
    ],
)
def test_a_wait_for_an_expression_without_a_value_ends_in_time_with_our_words(expression: str, problem: str) -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/late"))
        with pytest.raises(ToolError, match=problem):
            await tab.act(Wait(expression=expression, seconds=0.5))
        assert await tab.evaluate("1 + 1") == "2"

    browse(PAGES, work)


def test_steps_stop_at_the_first_that_fails_and_say_what_was_done() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/late"))
        outcome = await tab.act(
            Wait(text="now"), Click(target=ElementTarget(text="Absent")), Click(target=ElementTarget(text="Go"))
        )
        assert outcome.failed is not None
        assert "Absent" in outcome.failed
        assert await tab.evaluate("o.textContent") == '"now"'

    browse(PAGES, work)


def test_elements_in_open_shadow_roots_are_shown_filled_and_clicked() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/shadow"))
        texts = [line.text for line in (await tab.snapshot()).lines]
        assert any("Name" in text for text in texts) and any("Deep" in text for text in texts), texts
        name = Field(target=ElementTarget(label="Name"), value="Ada")
        outcome = await tab.act(Fill(fields=[name]), Click(target=ElementTarget(text="Deep")))
        assert "Ada" in outcome.diff
        assert await tab.evaluate("o.textContent") == '"Ada"'

    browse(PAGES, work)
