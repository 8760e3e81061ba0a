"""Synonyms in requests to programs.

General English of working with computers: files, pages, programs, messages, records. Each part up to a semicolon is
one meaning, and a word may have several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from longshore.text_search.tokenizer import STOP_WORDS, terms_of_word, to_all_terms, to_words

WEIGHT: Final = 0.6
"""How much a word counts that was not asked for, but means the same."""

FILLER_WEIGHT: Final = 0.3
"""How much a word counts that says little."""
_ADVERB_CHARACTERS: Final = 5
"""The shortest: `only` and `July` are none."""
QUERY_WORDS: Final = 200
"""Words of a request that are read."""

FILLERS: Final = frozenset(
    """please want need like would let know try help thing something anything everything someone anyone everyone stuff
    some any just really quickly give make take do got lot bit kind sort sure way tell going still already yet soon ago
    now today yesterday tomorrow tonight morning noon afternoon evening night week weekend month year hour minute second
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december next last ever never always maybe without new old use using able own whole place part
    called named given certain same different one two three computer machine laptop pc""".split()  # noqa: SIM905
)
"""Words of a request that say little of what is to be done."""

_MEANINGS: Final = """
delete remove erase drop destroy discard trash wipe unlink eliminate; clear empty reset wipe; forget delete remove;
create add new make insert generate; build generate make construct compile; open launch start;
begin start launch initiate trigger; navigate go visit open browse goto;
run execute launch start invoke perform trigger; close quit exit end shut; stop terminate kill end abort cancel halt;
cancel abort revoke undo; undo revert restore; list enumerate show all browse; which list get find;
show display view see present; read view see show content open cat load look; get fetch retrieve obtain read show look;
what get show read describe; who person user people contact employee; where find search locate location;
when time date calendar schedule; why explain reason cause diagnose analyze troubleshoot log;
write save store put create; save store keep write persist; put add create insert;
edit change modify update alter replace amend adjust fix correct patch; update change modify edit refresh revise;
set change configure assign adjust; turn convert toggle switch transform; convert transform turn export;
rename move name; move relocate transfer rename; copy duplicate clone; find search locate look query seek lookup hunt;
search find grep query lookup; contain include content inside; inside within content list; press click tap push hit;
press key keyboard type hit; type enter fill write input; fill enter type complete input; choose pick select option;
select choose pick option mark; check verify validate test inspect; tick toggle checkbox; wait pause sleep delay until;
scroll swipe; drag drop move; hover mouse pointer cursor; back previous return backward; forward next;
upload attach send; attachment attach file; download save fetch retrieve; send post submit deliver mail;
share send permission access invite; answer reply respond response; invite invitation attend attendee guest;
evaluate execute run script javascript js code expression; script code javascript program;
screenshot picture image photo snapshot capture shot; picture image photo screenshot graphic;
draw paint sketch generate image; crop cut resize trim; cut remove crop; snapshot capture accessibility structure tree;
reload refresh; resize size dimension width height small large; window viewport browser; tab page window;
page website site web webpage url; url address link website; link url href hyperlink; folder directory dir path;
file document; text word content string; command shell terminal console bash cmd;
process program task job application app; running active process; active running current open;
hang stuck freeze block force; session connection process; log message output history record;
history past earlier recent previous; output result print stdout; request http network call traffic;
error problem exception failure bug fault issue; fail failure error break crash; crash error failure;
remember memory store note save observation; know knowledge memory remember; knowledge memory graph;
relation link connection edge relationship connect; connect link join relate; entity node object thing;
observation fact note detail; fact observation note statement; note comment observation memo;
info information detail metadata property stat attribute; describe explain detail information;
summary summarize overview brief; big large size long; size big large length byte; permission allowed access right;
setting configuration config option preference; performance speed slow fast trace profile; sum add plus total;
echo repeat; user person account member people; employee staff colleague coworker worker person;
customer client buyer contact; contact phone address person customer; company firm organization business;
order purchase buy; buy purchase order book; book reserve reservation booking; invoice bill; bill invoice charge;
product item article good; payment pay charge money; money payment balance amount price cash fund refund;
price cost amount; balance account amount remaining left; left remaining balance; refund reimburse return money;
expense cost spending reimbursement; salary wage pay payslip; vacation holiday leave absence;
off leave absence disable; ticket issue; bug issue defect; sprint iteration; pull request pr merge; pr pull request;
branch fork; commit change revision; repository repo project; deploy release ship publish production rollout;
pipeline build ci workflow; build pipeline job ci; retry again rerun repeat; again retry repeat;
comment reply remark note; message mail email; email mail message; mail email message inbox;
chat message channel conversation; channel room chat; emoji reaction thumb like smiley; event appointment meeting;
meeting event appointment call; free available availability slot; diary calendar schedule; alarm alert alarm warning;
mute silence quiet suppress; acknowledge confirm alert; metric measurement statistic number;
database sql table postgres query; column field schema table; schema structure describe;
dialog popup alert prompt confirm; accept confirm approve agree ok; dismiss reject decline refuse cancel;
dropdown menu select option; button control element; field input form box; element control node component;
count number many amount; much amount total quantity; compare diff difference change; change diff difference;
help explain documentation usage; status state health alive; emulate simulate pretend imitate;
location geolocation place position coordinate; place location restaurant shop poi; near nearby around close;
route direction way path navigate; way direction route; map geocode direction; flight fly plane airport;
train rail station; hotel accommodation room stay; trip travel journey;
weather forecast rain snow sun sunny temperature wind cold warm hot cloud storm umbrella; tomorrow forecast;
pollution air quality; translate language french german spanish italian english chinese japanese; language translate;
say translate speak tell post; tell send message say; zip archive compress gzip; several multiple many batch bulk;
line row; part section portion range excerpt; first beginning head start top; last end tail bottom;
nested recursive tree subfolder subdirectory; name title call; pattern glob wildcard match regex;
watch monitor follow observe track; note remember observation write record; write send post message compose;
compose write draft create; draft prepare create compose; prepare draft create; put upload place set;
short summary brief summarize small; brief summary short; earn salary pay payslip income wage;
income salary revenue payslip; yes accept confirm allow ok; no decline dismiss reject cancel;
confirmation dialog confirm alert; where position bound box; todo search find comment; inform notify tell message send;
hear listen audio; learn find read; look snapshot screenshot image see; grab capture get fetch;
pick choose take select; take capture get; give get send assign; hand submit give send; leave exit close;
join enter connect; pull fetch get extract; extract get pull read parse; parse extract read; collect gather list get;
gather collect list; pour write; throw delete trash remove; away delete remove; rid delete remove close dismiss;
kick remove delete; tidy clean delete; clean clear delete purge; purge clean delete clear; works work status;
work status; latest recent new list; newest latest recent; current now active; still active running;
earlier previous before; happen happened log history event; happening status log event; occur happen event;
changed change modified commit history; modified change edit; author commit history user; blame commit history;
made create generate; written text write content; said message history text; talk chat message speak;
speak talk translate; greyed disabled enabled; disabled enabled disable; clickable enabled click;
empty clear blank space; blank empty; beside near next; exactly position; outline border highlight;
colour color style css; red color; blue color; bright color; wide width size; tall height size; high height level;
deep depth nested; heavy size weight; expensive price cost; cheap price cost; free available gratis;
busy calendar available; available free status; book reserve appointment; reserve book; abort cancel stop;
call phone request invoke; ring call phone; dial call phone; formatted format; markdown format text; pretty format;
json format structured; structured json; csv format table; average mean compute; mean average;
compute execute calculate; prompt shell question command; python script execute code process;
node script code javascript; interpreter shell process; repl shell process interact; terminal session process shell;
agenda calendar schedule event; inbox mail message email; newsletter mail email message; letter mail email;
postpone delay reschedule move update event; reschedule move update; invite event attendee send;
remind reminder alarm notification; reminder todo task alarm; todo task list item; task issue ticket todo job;
issue ticket bug task; done complete finish close transition state; finish complete done close end;
reopen open transition; assign assignee owner responsible; priority urgent important severity; backlog sprint board;
milestone sprint release; merge combine join integrate; review approve feedback; contract document agreement;
spreadsheet excel sheet table csv document; slide presentation document; letter document; photo picture image;
illustration image picture drawing graphic generate; drawing image picture; portrait photo image;
thumbnail image preview resize; scan image text ocr extract; ocr text image extract recognize;
receipt expense invoice bill; video recording screencast movie clip; film video movie; song music audio track;
music song audio play; sound audio volume; speech voice audio speak; speak voice say; camera photo picture;
mobile phone device emulate; phone mobile device telephone; tablet device mobile; device emulate hardware;
offline network emulate; walk direction route foot; drive direction route car; car drive vehicle;
travel trip direction route; reach direction way; distance far direction length; far distance; airport flight plane;
ticket booking fare; room hotel accommodation; stay hotel; restaurant food eat place; eat restaurant food;
food meal recipe restaurant; doctor appointment medical; umbrella weather forecast rain; degree temperature weather;
smog pollution air; sentence text language translate; mean meaning translate define; word text language;
rewrite edit text; lead contact prospect customer; prospect lead contact; deal opportunity sale; sale deal revenue;
sell sale deal; shop store buy product; cart basket order; stock inventory quantity; inventory stock;
ship deliver send delivery; delivery shipping package parcel; package parcel delivery;
dollar euro money amount payment; credit payment card refund; card payment credit; paid payment pay;
owe invoice balance debt; unpaid invoice open due; subscription plan membership; membership subscription;
donate payment; tax invoice; transfer send move; bank account payment; budget cost money; earn salary pay;
hire employee candidate; job position work; sick leave absence; holiday vacation leave; colleague employee user;
boss manager; team group member; group team; member user person; guest user attendee; login sign authenticate password;
password secret credential login; secret password key credential token; user login account; sql query database;
insert add row create; record row entry; row record entry line; query search ask request; ask query question;
question ask query; index search; backup copy export save; export save download convert; import load upload read;
restore recover revert undo; recover restore; revision version history; version release revision; server host machine;
machine computer host server; computer machine desktop system; disk drive storage file; drive disk storage cloud;
storage disk drive space; space storage size disk; cloud drive storage; usb disk; memory ram heap;
cpu metric processor; load metric traffic; outage incident alert down; incident alert outage; down outage status;
up status alive; ping status health; alert alarm incident; page alert; oncall duty; duty call; graph chart plot metric;
chart graph plot; plot chart graph; dashboard metric; log event history; build compile; step job stage;
stage environment; staging environment deploy; test verify check; unit test; bug error; debug trace inspect;
inspect examine analyze look view; examine inspect analyze; analyze examine inspect audit study;
audit analyze check score; score rating audit; quality audit score; speed performance time; time date clock hour;
day date; date day time; convert change format; format convert; shrink compress resize reduce; reduce shrink compress;
enlarge resize grow; bigger resize enlarge; smaller shrink resize compress; bold style font; highlight mark;
mark label flag highlight; flag mark label; star favorite; pin keep; archive store label; spam junk label;
folder label; group label; sort order arrange; order sort; filter select where; rank sort; top best first;
heading title name; title name heading; caption title text; paragraph text; quote text; footnote text; language locale;
country region location; city place location; town place city; street address; address location place street;
map place location; gps location coordinate; latitude coordinate location; home house address; office work;
chapter section; page document; website page site; homepage page website; blog page article post; article page post;
news article page; forum post discussion; discuss comment chat conversation; conversation chat thread history;
thread conversation message reply; topic subject channel; subject title topic; announce post message publish;
publish post release; broadcast post send; notify send notification message alert; notification alert notify message;
whisper direct private message; private direct secret; public share; access permission open;
grant allow permission share; allow permit accept grant enable; enable allow activate turn;
disable deactivate off turn; activate enable start; deactivate disable; block deny refuse; deny reject refuse block;
ban block remove; hide remove invisible; reveal show; visible shown displayed show; appear show visible wait;
disappear hide gone wait; cover overlay; overlay popup cover; modal dialog popup; banner popup overlay; tooltip hover;
menu dropdown navigation; checkbox click check tick; radio option choose; slider drag; scrollbar scroll;
textbox field input; box field input container; submit click; login click fill; register sign account form;
sign login register; subscribe register join; survey form; answer fill reply; escape key press; enter key press;
shortcut key press; arrow key press; mouse click pointer; touch tap click; double click; right click;
focus activate select; blur focus; zoom scale resize; rotate turn; fullscreen resize window; orientation rotate;
background color backdrop; foreground color; theme color scheme dark light; dark theme color; print pdf output;
paper pdf print; scroll move; bottom end; attach connect; detach disconnect; connect link attach; plug connect;
disconnect close detach; restart start again reload; reboot restart; sleep wait; wake start; install add setup;
setup install configure team; uninstall remove; upgrade update; downgrade revert; configure setting config set;
customize configure; tune configure adjust; measure metric size length; weigh measure size; estimate calculate;
calculate compute evaluate sum; compute calculate; math calculate; number digit value; value number content;
average metric; random generate; guess estimate; predict forecast; forecast prediction; learn remember study;
study analyze research; research study search investigate; investigate research analyze; recall remember memory search;
mention contain name; belong relation; property attribute; attribute property; tag label; keyword tag search term;
term word; abbreviation word; synonym word; spell check; grammar check; correct fix; mistake error; wrong error;
broken error fail; slow performance; fast performance; stuck hang; leak memory heap; garbage memory;
traffic network request; packet network; header request; response request answer; api request endpoint;
endpoint url api; backend server api; frontend page browser; browser chrome firefox page; chrome browser;
cookie storage; cache storage; download file; zip file archive; binary file; program application script;
app application program; tool function command; function tool code; library package; dependency package;
module package; class style; variable environment value; environment variable env; path folder directory;
root folder directory; parent folder; child nested; subfolder nested folder directory; tree nested structure hierarchy;
hierarchy tree structure; structure tree layout; layout arrangement structure grid; grid layout; container box layout;
margin whitespace spacing; padding whitespace spacing; spacing whitespace margin; whitespace space gap margin;
gap space whitespace; border bound box; position location bound; bound box position; schedule plan; label tag category;
style css design appearance; color style css; font style css; logo icon image svg; vector svg; column table;
recording video screencast record
""".strip()


_PHRASES: Final = """
get rid of: delete; throw away: delete; throw out: delete; clean up: delete clean; look for: search; look up: search;
find out: find; look at: view; take a look: view; check out: view; look like: screenshot appearance;
looks like: screenshot appearance; how big: size; how large: size; how many: count; how much: amount;
how long: duration; how fast: performance; how old: date; how far: distance; how do i get: direction;
way to: direction; what is in: list content; what's in: list content; what is inside: list content;
what's inside: list content; what is on: list read; what's on: list read; who is: person find;
what do we know: search memory; what do you know: search memory; write down: note remember add;
note down: note remember add; keep in mind: remember; make a note: note add; set up: configure create;
switch off: disable; turn off: disable; switch on: enable; turn on: enable; switch to: select; go to: navigate;
go back: back navigate; come back: back; send back: return refund; give back: return refund; pay back: refund;
money back: refund; call off: cancel; put off: postpone; hand in: submit; fill in: fill; fill out: fill; type in: type;
type out: extract text; log in: login; sign in: login; sign up: register; log out: logout; cut out: remove crop;
take out: remove; leave out: exclude; bring up to date: update; shut down: stop; start up: start; carry out: execute;
work out: calculate; add up: sum; point at: hover; keep an eye on: monitor; get in touch: message; let know: notify;
back up: backup; short version: summary; in short: summary; sum up: summary; at the same time: multiple;
at once: multiple; all at once: multiple; right now: current; at the moment: current; next to: near; close to: near;
on call: on-call; time off: time-off leave; day off: leave; days off: leave; get started: getting started;
does not work: troubleshoot problem; doesn't work: troubleshoot problem; went wrong: error log; goes wrong: error log;
went on: log history; going on: status log; take place: event; in touch: message; pull request: pull-request;
phone number: contact phone; in use: active
""".strip()


@cache
def _phrase_pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    parts = [line.partition(":") for line in _PHRASES.split(";")]
    meanings = {" ".join(phrase.split()): meaning.strip() for phrase, _, meaning in parts}
    longest_first = sorted(meanings, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE), meanings


def _replace_phrases(text: str) -> str:
    """A request with single words for phrases with a meaning of their own."""
    pattern, meanings = _phrase_pattern()
    return pattern.sub(lambda found: meanings[found[0].lower()], text)


@cache
def _table() -> MappingProxyType[str, frozenset[str]]:
    found = dict[str, set[str]]()
    for line in _MEANINGS.split(";"):
        terms = set(to_all_terms(line))
        for term in terms:
            found.setdefault(term, set()).update(terms - {term})
    return MappingProxyType({term: frozenset(others) for term, others in found.items()})


_FILE_NAME: Final = re.compile(r"\b[\w-]+\.([A-Za-z]\w{0,4})\b")
_KINDS: Final = MappingProxyType(
    dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "svg"), "image") | dict.fromkeys(("mp3", "wav", "ogg"), "audio")
)
_KEY: Final = re.compile(r"\b[A-Z]{2,}-\d+\b")
_SEVERAL: Final = re.compile(r"\s*(?:what|which)\s+(?:\w+\s+)?\w{2,}(?<!s)s\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\b\d+(?:[.,]\d+)*\b")
QUESTION_WORDS: Final = frozenset(
    "what which who whom whose where when why how did do does is are was were has have had".split()  # noqa: SIM905
)
"""First words of a question, which something that reads answers. "Can you" and "could you" ask for anything."""


def name_kinds(text: str) -> str:
    """A request with added words for the kinds of things that it names by an example, or in the plural.

    notes.txt is a file, 17 a number and APP-17 an issue; "which pages" asks for a list.
    """
    text, keys = _KEY.subn("", text)
    found = [_KINDS.get(ending.lower(), "") + " file" for ending in _FILE_NAME.findall(text)]
    found += ["issue"] * bool(keys) + ["list"] * bool(_SEVERAL.match(text))
    found += ["number"] * bool(_NUMBER.search(_FILE_NAME.sub("", text)))
    return " ".join([text, *found])


def is_question(text: str) -> bool:
    """Whether a request asks for information, not for an action."""
    words = to_words(text[:200])
    return bool(words) and words[0].lower().partition("'")[0] in QUESTION_WORDS


def read_request(text: str) -> list[dict[str, float]]:
    """The things that a request in plain words names: for each its terms with their weights.

    Words like "where" and "why" count as the thing that they ask for, and vague words have a low weight.
    """
    found = dict[str, dict[str, float]]()
    for word in to_words(_replace_phrases(text))[:QUERY_WORDS]:
        is_filler, meanings = word.lower() in FILLERS, _table()
        for term in terms_of_word(word):
            others = sorted(meanings.get(term, frozenset()) | _adjective(word, meanings))
            if word.lower() in STOP_WORDS and not others:
                continue
            weight = FILLER_WEIGHT if is_filler else 1.0
            found.setdefault(term, {term: weight, **dict.fromkeys(others, weight * WEIGHT)})
    return list(found.values())


def _adjective(adverb: str, meanings: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The adjective of an adverb: slow for slowly."""
    if not adverb.lower().endswith("ly") or len(adverb) < _ADVERB_CHARACTERS:
        return frozenset()
    terms = terms_of_word(adverb[:-2])
    return frozenset(terms).union(*(meanings.get(term, frozenset()) for term in terms))
