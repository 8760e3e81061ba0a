"""What the page script shows: small pages and their lines."""

# ruff: noqa: E501  # each page is one line
from __future__ import annotations

from collections.abc import Iterator

import pytest

from .page import TestPage, open_page

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


@pytest.fixture(scope="module")
def page(browser_path: str) -> Iterator[TestPage]:
    with open_page() as opened:
        yield opened


Case = tuple[str, str, list[str]]

ROLES: list[Case] = [
    ("link", "<a href=/x>Go</a>", ["e1 link Go"]),
    ("place, no link", "<a name=top>Top</a>", ["> Top"]),
    ("link of a script", "<a class=more>More</a>", ["e1 clickable More"]),
    (
        "buttons",
        "<button>A</button><input type=submit><input type=button value=B>",
        ["e1 button A", "e2 button submit", "e3 button B"],
    ),
    ("image button", f"<input type=image alt=Search src='{PIXEL}'>", ["e1 button Search"]),
    ("text fields", "<input aria-label=A><textarea aria-label=B></textarea>", ["e1 textbox A", "e2 textbox B"]),
    ("search", "<search><input type=search aria-label=Q></search>", ["search", " e1 searchbox Q"]),
    (
        "ranges",
        "<input type=range aria-label=R value=3 max=9><input type=number aria-label=N value=4>",
        ["e1 slider R = 3", "e2 spinbutton N = 4"],
    ),
    (
        "dates",
        "<input type=date aria-label=D value=2024-05-06><input type=time aria-label=T><input type=month aria-label=M>"
        "<input type=week aria-label=W><input type=datetime-local aria-label=L><input type=color aria-label=C>",
        ["e1 date D = 2024-05-06", "e2 time T", "e3 month M", "e4 week W", "e5 datetime L", "e6 color C = #000000"],
    ),
    ("file", "<input type=file aria-label=F>", ["e1 file F"]),
    ("hidden field", "<input type=hidden name=token value=x>", []),
    ("select", "<select aria-label=S><option>a<option selected>b</select>", ["e1 combobox S = b of a/b"]),
    (
        "listbox",
        "<select multiple aria-label=S><option selected>a<option selected>b<option>c</select>",
        ["e1 listbox S = a, b of a/b/c"],
    ),
    ("suggestions", "<input list=l aria-label=S><datalist id=l><option value=a></datalist>", ["e1 combobox S"]),
    (
        "checks",
        "<input type=checkbox aria-label=C checked><input type=radio aria-label=R>",
        ["e1 checkbox,checked C", "e2 radio R"],
    ),
    ("image", f"<img alt=Cat src='{PIXEL}'><img alt='' src='{PIXEL}'>", ["img Cat"]),
    ("drawing", "<svg width=9 height=9><title>Logo</title><rect width=9 height=9 /></svg>", ["img Logo"]),
    (
        "landmarks",
        "<header>H</header><nav>N</nav><main>M</main><aside>A</aside><footer>F</footer>",
        ["banner", " > H", "navigation", " > N", "main", "> M", "complementary", " > A", "contentinfo", " > F"],
    ),
    ("no landmark in an article", "<article><header>H</header>text</article>", ["> H", " > text"]),
    ("sections", "<section aria-label=Named>a</section><section>b</section>", ["region Named", " > a", "> b"]),
    (
        "progress",
        "<progress aria-label=P value=3 max=10>30 %</progress><meter aria-label=M value=.5></meter>",
        ["progressbar P = 3", "meter M = 0.5"],
    ),
    ("loading", "<div role=progressbar></div>", ["progressbar"]),
    ("media", "<video aria-label=Film></video>", ["video Film"]),
    (
        "explicit roles",
        "<div role=button tabindex=0>B</div><div role=heading aria-level=3>H</div><div role=image aria-label=I></div><b role=none>N</b>",
        ["e1 button B", "h3 H", "img I", "> N"],
    ),
    (
        "tabs",
        "<div role=tablist><div role=tab aria-selected=true>A</div><div role=tab>B</div></div><div role=tabpanel aria-label=A>text</div>",
        ["tablist", " e1 tab,selected A", " e2 tab B", "tabpanel A", " > text"],
    ),
    (
        "menu",
        "<ul role=menu><li role=menuitem>Cut</li><li role=menuitemcheckbox aria-checked=true>Bold</li></ul>",
        ["menu", " e1 menuitem Cut", " e2 menuitemcheckbox,checked Bold"],
    ),
    (
        "own listbox",
        "<ul role=listbox aria-label=L><li role=option aria-selected=true>a</li><li role=option>b</li></ul>",
        ["e1 listbox L", " e2 option,selected a", " e3 option b"],
    ),
    ("closed listbox", "<ul role=listbox aria-label=L style='margin:0;padding:0'></ul>", []),
    (
        "own combobox",
        "<b id=l>Age</b><div role=combobox aria-expanded=false aria-labelledby=l tabindex=0>Ten</div>",
        ["e1 combobox,collapsed Age = Ten"],
    ),
    ("tree", "<ul role=tree><li role=treeitem aria-expanded=true>a</li></ul>", ["tree", " e1 treeitem,expanded a"]),
    ("editor", "<div contenteditable aria-label=Note>some <b>text</b></div>", ["e1 textbox Note = some text"]),
    (
        "details",
        "<details><summary>More</summary>inner</details><details open><summary>Less</summary>shown</details>",
        ["e1 button,collapsed More", "e2 button,expanded Less", "> shown"],
    ),
    ("dialog", "<dialog open><h2>Sure?</h2><button>Yes</button></dialog>", ["dialog", " h2 Sure?", " e1 button Yes"]),
    ("output", "<output>42</output>", ["status", " > 42"]),
]

NAMES: list[Case] = [
    ("label around", "<label>Name <input></label>", ["e1 textbox Name"]),
    ("label after", "<input type=checkbox id=c><label for=c>Agree</label>", ["e1 checkbox Agree"]),
    ("aria-label wins", "<button aria-label=Close>x</button>", ["e1 button Close"]),
    (
        "aria-labelledby, shown once",
        "<b id=a>First</b> <b id=b>name</b><input aria-labelledby='a b'>",
        ["e1 textbox First name"],
    ),
    (
        "labelled by a button",
        "<button id=b>Menu</button><div role=menu aria-labelledby=b><b role=menuitem>A</b></div>",
        ["e1 button Menu", "menu Menu", " e2 menuitem A"],
    ),
    (
        "label that aria-label hides is text",
        "<label for=d>Birthday</label><input id=d aria-label='Choose date'>",
        ["> Birthday", "e1 textbox Choose date"],
    ),
    (
        "label of a widget",
        "<label for=g>Kind</label><div id=g role=radiogroup><input type=radio aria-label=A></div>",
        ["radiogroup Kind", " e1 radio A"],
    ),
    ("title", "<button title=Print></button>", ["e1 button Print"]),
    ("placeholder", "<input placeholder=Search>", ["e1 textbox Search"]),
    ("name attribute last", "<input name=email>", ["e1 textbox email"]),
    ("image in a link", f"<a href=/><img alt=Home src='{PIXEL}'></a>", ["e1 link Home"]),
    (
        "drawing in a button",
        f"<button><img alt='' src='{PIXEL}'><svg width=9 height=9><title>Save</title></svg></button>",
        ["e1 button Save"],
    ),
    (
        "text of a style sheet",
        "<style>#b::before { content: 'Normal' }</style><button id=b></button>",
        ["e1 button Normal"],
    ),
    ("icon font", "<style>#b::before { content: '\\e900' }</style><button id=b></button>", ["e1 button"]),
    (
        "fieldset",
        "<fieldset><legend>Size</legend><label><input type=radio> S</label></fieldset>",
        ["group Size", " e1 radio S"],
    ),
    ("figure", f"<figure><img alt=Cat src='{PIXEL}'><figcaption>Tom</figcaption></figure>", ["img Cat", "> Tom"]),
    ("caption", "<table><caption>Sales</caption><tr><td>1</table>", ["table Sales", " | 1"]),
    (
        "region named by its heading",
        "<section aria-labelledby=h><h2 id=h>News</h2>text</section>",
        ["region", " h2 News", " > text"],
    ),
    ("iframe", "<iframe title=Map srcdoc='<p>inner</p>'></iframe>", ["e1 iframe Map", " > inner"]),
    (
        "hidden text in a name",
        "<button><span aria-hidden=true>x</span> Close <span style='display:none'>now</span></button>",
        ["e1 button Close"],
    ),
    (
        "screen reader text in a name",
        "<button><span style='position:absolute;width:1px;height:1px;overflow:hidden'>Next</span></button>",
        ["e1 button Next"],
    ),
    ("no look of a value", "<button>Sum = 5</button>", ["e1 button Sum=5"]),
    ("long name", f"<button>{'x' * 500}</button>", ["e1 button " + "x" * 400 + "…(500 characters)"]),
    ("invisible characters", "<button>a\u200bb\u202ec</button>", ["e1 button abc"]),
    ("right to left", "<div dir=rtl>مرحبا <button>زر</button></div>", ["> مرحبا", "e1 button زر"]),
    ("no spaces", "<p>日本語のテキスト</p><button>送信</button>", ["> 日本語のテキスト", "e1 button 送信"]),
]

STATES: list[Case] = [
    (
        "form with a field named matches",
        "<form onclick=''><input name=matches><p>x</p></form>",
        ["e1 clickable x", " e2 textbox matches"],
    ),
    (
        "disabled by a fieldset",
        "<fieldset disabled><legend>F <button>L</button></legend><label>A <input></label><button>B</button></fieldset>",
        ["group F L", " e1 textbox,disabled A", " e2 button,disabled B"],
    ),
    (
        "disabled",
        "<button disabled>A</button><button aria-disabled=true>B</button>",
        ["e1 button,disabled A", "e2 button,disabled B"],
    ),
    (
        "readonly and required",
        "<input readonly aria-label=A><input required aria-label=B>",
        ["e1 textbox,readonly A", "e2 textbox,required B"],
    ),
    ("mixed", "<b role=checkbox aria-checked=mixed tabindex=0>A</b>", ["e1 checkbox,mixed A"]),
    (
        "expanded",
        "<button aria-expanded=true>A</button><button aria-expanded=false>B</button>",
        ["e1 button,expanded A", "e2 button,collapsed B"],
    ),
    (
        "pressed and current",
        "<button aria-pressed=true>A</button><a href=/ aria-current=page>B</a>",
        ["e1 button,pressed A", "e2 link,current B"],
    ),
    ("invalid", "<input aria-invalid=true aria-label=A>", ["e1 textbox,invalid A"]),
    ("focused", "<input aria-label=A id=i><script>i.focus()</script>", ["e1 textbox,focused A"]),
    (
        "password",
        "<input type=password value=hunter2 aria-label=P><input type=password aria-label=Q>",
        ["e1 textbox P = ••••", "e2 textbox Q"],
    ),
    (
        "slider of a script",
        "<div role=slider tabindex=0 aria-label=V aria-valuenow=30></div><div role=slider aria-label=W aria-valuenow=1 aria-valuetext=Low></div>",
        ["e1 slider V = 30", "e2 slider W = Low"],
    ),
    (
        "many options",
        "<select aria-label=S>" + "".join(f"<option>option {n}" for n in range(40)) + "</select>",
        [
            "e1 combobox S = option 0 of option 0/option 1/option 2/option 3/option 4/option 5/option 6/option 7/option 8/option 9/option 10/option 11/option 12… (40)"
        ],
    ),
    ("long value", f"<input aria-label=A value={'y' * 200}>", ["e1 textbox A = " + "y" * 120 + "…(200 characters)"]),
]

VISIBILITY: list[Case] = [
    ("display", "<p style='display:none'>x</p>y", ["> y"]),
    ("visibility", "<p style='visibility:hidden'>x<b style='visibility:visible'>z</b></p>y", ["> y"]),
    ("opacity", "<p style='opacity:0'>x</p>y", ["> y"]),
    ("aria-hidden", "<i aria-hidden=true>x</i>y", ["> y"]),
    ("hidden", "<p hidden>x</p><p hidden=until-found>z</p>y", ["> y"]),
    ("font", "<p style='font-size:0'>x</p>y", ["> y"]),
    ("smallest font", "<p style='font-size:3.9px'>x</p><p style='font-size:4px'>y</p>", ["> y"]),
    ("filter", "<p style='filter:opacity(0)'>x</p><p style='filter:opacity(0.5)'>y</p>", ["> y"]),
    ("clip", "<p style='position:absolute;clip-path:inset(50%)'>x</p>y", ["> y"]),
    ("one pixel", "<p style='position:absolute;width:1px;height:1px;overflow:hidden'>x</p>y", ["> y"]),
    ("indent", "<p style='text-indent:-9999px'>x</p>y", ["> y"]),
    ("off screen", "<div style='position:absolute;left:-9999px'><p>x</p><button>X</button></div>y", ["> y"]),
    (
        "off canvas",
        "<div style='position:fixed;left:0;top:0;width:200px;height:100%;transform:translateX(-100%)'><a href=/>X</a></div>y",
        ["> y"],
    ),
    (
        "a link that nobody can see",
        "<a href=#c style='position:absolute;left:-999px'>Skip</a>y",
        ["> y"],
    ),
    (
        "scrolled away",
        "<div id=d style='position:absolute;inset:0;overflow:auto'><p style='position:relative'>x</p><div style='height:9999px'>y</div></div>"
        "<script>d.scrollTop = 5000; d.firstChild.append(' shown')</script>",
        ["e1 scrollable = 5000 of 9350px", " > x shown", " > y"],
    ),
    (
        "slides",
        "<div style='overflow:hidden;width:1000px;margin:-8px'><div style='display:flex;transform:translateX(-1000px)'>"
        "<p style='flex:0 0 1000px'>x</p><p style='flex:0 0 1000px'>y</p></div></div>",
        ["> y"],
    ),
    (
        "page from right to left",
        "<style>html { direction: rtl }</style><p style='margin-right:2000px;width:90px'>x</p>",
        ["> x"],
    ),
    ("folded", "<div style='max-height:0;overflow:hidden'><p>x</p><button>X</button></div>y", ["> y"]),
    ("contents", "<div style='display:contents'><p>x</p></div>", ["> x"]),
    (
        "script and style",
        "<script>var x</script><style>p{}</style><template>z</template><noscript>n</noscript>y",
        ["> y"],
    ),
    ("inert", "<div inert><p>x</p><button>X</button></div>y", ["(2 lines that can't be used now)", "> y"]),
    ("closed popover", "<div popover>x</div>y", ["> y"]),
    (
        "transparent checkbox",
        "<label><input type=checkbox style='opacity:0;position:absolute'> A</label>",
        ["e1 checkbox A"],
    ),
    (
        "checkbox that its label stands for",
        "<input type=checkbox id=c style='display:none'><label for=c>A</label>",
        ["e1 checkbox A"],
    ),
    ("field in a transparent part", "<div style='opacity:0'>x<input aria-label=A></div>", ["e1 textbox A"]),
    ("fading part that takes no clicks", "<div style='opacity:0;pointer-events:none'>x<input aria-label=A></div>", []),
    (
        "page behind a dialog of a script",
        "<div aria-hidden=true><p>x</p><button>X</button></div><div role=dialog aria-modal=true>y</div>",
        ["(2 lines that can't be used now)", "dialog", " > y"],
    ),
    (
        "page behind a dialog",
        "<p>x</p><dialog id=d>y</dialog><button>X</button><script>d.showModal()</script>",
        ["(1 lines that can't be used now)", "dialog", " > y", "(1 lines that can't be used now)"],
    ),
    (
        "icon to click",
        "<b>Tag</b><svg aria-hidden=true width=9 height=9 style='cursor:pointer'></svg>",
        ["> Tag", "e1 clickable icon"],
    ),
]

STRUCTURE: list[Case] = [
    ("heading", "<h1>A</h1><h6>B</h6>", ["h1 A", "h6 B"]),
    ("heading that is a link", "<h2><a href=/>News</a></h2>", ["e1 link,h2 News"]),
    ("heading with a link", "<h2>News <a href=/>all</a></h2>", ["h2 News all", " e1 link all"]),
    ("list", "<ul><li>One<ul><li>Two</ul><li><a href=/>Three</a></ul>", ["> One", " > Two", "e1 link Three"]),
    ("item with more lines", "<ul><li>Kettle <button>Buy</button></ul>", ["> Kettle", " e1 button Buy"]),
    ("definitions", "<dl><dt>Term<dd>Meaning</dl>", ["> Term", "> Meaning"]),
    ("inline text is one line", "<p>A <b>bold</b> and<br>a <i>new</i> line</p>", ["> A bold and a new line"]),
    ("link in a text", "<p>See <a href=/>this</a> now</p>", ["> See", "e1 link this", "> now"]),
    ("long text", f"<p>{'z' * 500}</p>", ["> " + "z" * 400 + "…(500 characters)"]),
    (
        "table",
        "<table><thead><tr><th>Item<th>Price</thead><tr><td>Kettle<td>5<tr><td>Cup<td><button>Edit</button></table>",
        ["table", " | Item | Price", " | Kettle | 5", " | Cup | e1 button Edit"],
    ),
    (
        "cells that look like controls",
        "<table><tr><td>e1 button Pay<td>x f2e3 link<td><p>e4<p>button Go<td>e5x e6, <button>Buy e7 link Go</button></table>",
        ["table", " | 'e1' button Pay | x 'f2e3' link | 'e4' button Go | e5x e6, e1 button Buy 'e7' link Go"],
    ),
    (
        "row in a cell",
        "<div role=row><div><div role=row><div><button>A</button></div></div></div></div>",
        ["| e1 button A"],
    ),
    ("pipe in a cell", "<table><tr><td>a|b<td>c</table>", ["table", " | a/b | c"]),
    (
        "spans",
        "<table><tr><th rowspan=2>R<th colspan=2>C<tr><th>a<th>b<tr><td colspan=3>t</table>",
        ["table", " | R | C", " | a | b", " | t"],
    ),
    ("table in a table", "<table><tr><td><table><tr><td>in</table></table>", ["table", " table", "  | in"]),
    ("layout table", "<table role=presentation><tr><td>a<td><button>B</button></table>", ["> a", "e1 button B"]),
    (
        "row to click",
        "<table><tr onclick=f()><td>a<td><button>B</button></table>",
        ["table", " e1 row | a | e2 button B"],
    ),
    (
        "cells to click",
        "<div role=grid><div role=row><button role=gridcell>1</button><button role=gridcell aria-selected=true>2</button></div></div>",
        ["grid", " | e1 cell 1 | e2 cell,selected 2"],
    ),
    (
        "clickable",
        "<div onclick=f()>Card</div><span style='cursor:pointer'>Tip</span><p tabindex=0>Key</p>",
        ["e1 clickable Card", "e2 clickable Tip", "e3 clickable Key"],
    ),
    ("list item to click", "<ul><li style='cursor:pointer'>Page 2</ul>", ["e1 clickable Page 2"]),
    (
        "clickable around one control",
        "<span style='cursor:pointer'><input type=checkbox aria-label=A></span>",
        ["e1 checkbox A"],
    ),
    (
        "clickable around text and a control",
        "<div style='cursor:pointer'><h3>Card</h3><button>Like</button></div>",
        ["e1 clickable Card Like", " e2 button Like"],
    ),
    (
        "control around a clickable of its name",
        "<div role=radio tabindex=0>One<span style='cursor:pointer'></span></div>",
        ["e1 radio One"],
    ),
    ("focus trap", "<div tabindex=0></div>y", ["> y"]),
    (
        "part of a drawing",
        "<svg width=50 height=50><rect width=9 height=9 style='cursor:pointer'><title>Bar</title></rect><g role=button aria-label=Two><circle r=5 /></g></svg>",
        ["e1 clickable Bar", "e2 button Two"],
    ),
    (
        "scrollable part",
        "<div style='height:100px;overflow:auto'><div style='height:350px'>a</div></div>b",
        ["e1 scrollable = 0 of 250px", " > a", "> b"],
    ),
    ("frame", "<iframe srcdoc='<button>In</button>'></iframe>", ["e1 iframe", " e2 button In"]),
    ("text that looks like a line", "<p>e1 button Pay</p>", ["> e1 button Pay"]),
]

SHADOW: list[Case] = [
    (
        "open",
        "<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<button>In</button>'</script>",
        ["e1 button In"],
    ),
    (
        "slots",
        "<div id=h>light <b slot=t>Title</b></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<slot name=t></slot><hr><slot></slot><slot name=n>none</slot>'</script>",
        ["> Title", "> light none"],
    ),
    ("declared", "<div><template shadowrootmode=open><p>in</p></template></div>", ["> in"]),
    (
        "closed",
        "<x-closed><b slot=t>Title</b></x-closed><script>customElements.define('x-closed', class extends HTMLElement { constructor() { super();"
        " this.attachShadow({mode: 'closed'}).innerHTML = '<slot name=t></slot><button>In</button>' } })</script>",
        ["> Title", "e1 button In"],
    ),
    (
        "closed on a part of the page",
        "<p>a</p><div id=h>\n</div><section id=s></section><script>h.attachShadow({mode: 'closed'}).innerHTML = '<button>In</button><div id=i></div>';"
        "s.attachShadow({mode: 'closed'}).innerHTML = '<b style=\"position:fixed\">Over</b>'</script>",
        ["> a", "e1 button In", "> Over"],
    ),
    (
        "closed in closed",
        "<x-outer></x-outer><script>for (const [n, h] of [['x-inner', '<p>deep</p>'], ['x-outer', '<x-inner></x-inner>']])"
        " customElements.define(n, class extends HTMLElement { constructor() { super(); this.attachShadow({mode: 'closed'}).innerHTML = h } })</script>",
        ["> deep"],
    ),
    (
        "custom element without a root",
        "<x-plain>text</x-plain><script>customElements.define('x-plain', class extends HTMLElement {})</script>",
        ["> text"],
    ),
    (
        "parts of the browser's own",
        "<input type=date aria-label=D><video controls aria-label=V></video>",
        ["e1 date D", "video V"],
    ),
    (
        "label around a host",
        "<label>Wifi <x-switch></x-switch></label><script>customElements.define('x-switch', class extends HTMLElement { static formAssociated = true; constructor() { super();"
        " this.attachShadow({mode: 'open'}).innerHTML = '<input type=checkbox role=switch>' } })</script>",
        ["e1 switch Wifi"],
    ),
]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        pytest.param(html, expected, id=name)
        for cases in (ROLES, NAMES, STATES, VISIBILITY, STRUCTURE, SHADOW)
        for name, html, expected in cases
    ],
)
def test_a_page_is_shown_as(page: TestPage, html: str, expected: list[str]) -> None:
    assert page.lines(html) == expected
