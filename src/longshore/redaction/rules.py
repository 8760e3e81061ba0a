"""The rules that recognise credentials: expressions that find candidates, and tests of a candidate's value.

There are four kinds: prefixes of known keys; blocks and hashes that can be nothing else; the user's part of an address;
and a value near a name such as `token`, whose shape decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from longshore.redaction.shapes import (
    is_bare_password,
    is_bare_random,
    is_long_bare_random,
    is_long_random,
    is_mixed_password,
    is_password,
    is_placeholder,
    is_random,
)

MARKER: Final = "[secret removed]"
"""The marker that replaces a credential."""

Place = Literal["anywhere", "at the needle", "at the line of the needle"]


class RedactionRule(NamedTuple):
    needles: tuple[str, ...]
    """In lower case. The expression is tried only on texts that have one of them: most have none."""
    pattern: str
    """Compiled on first use: all of them take 30 ms. Its group `secret` is replaced, or `quoted`, or all of it."""
    accept: Callable[[str], bool] = bool
    begins: Place = "anywhere"
    """Where the expression can match. Without a place, it is tried at each character, which takes ten times as long."""


def _is_user_secret(text: str) -> bool:
    return len(text) >= 16 and is_random(text)


def _is_url_password(text: str) -> bool:
    return not (is_placeholder(text) or re.fullmatch(r"(?i)pass(?:word|wd)?|pw|secret|token", text))


def _is_no_placeholder(text: str) -> bool:
    return not is_placeholder(text)


def _has_key_data(text: str) -> bool:
    return bool(re.search(r"[A-Za-z0-9+/=]{16}", text))


_KEYS: Final = (
    # Prefixes of keys, in lower case and as an expression, and the rest of the key. AWS
    (("akia", "asia", "abia", "acca", "aroa"), r"A(?:KIA|SIA|BIA|CCA|ROA)", r"[0-9A-Z]{16}"),
    (("agpa", "aida", "anpa"), r"A(?:GPA|IDA|NPA)", r"[0-9A-Z]{16}"),
    (("ltai",), r"LTAI", r"[A-Za-z0-9]{12,30}"),  # Alibaba
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_", r"[A-Za-z0-9]{30,255}"),
    (("github_pat_",), r"github_pat_", r"[A-Za-z0-9_]{40,255}"),
    (("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-"), r"gl(?:pat|ptt|dt|rt|cbt)-", r"[\w.-]{20,100}"),
    (("glsoat-", "glagent-", "glft-"), r"gl(?:soat|agent|ft)-", r"[\w.-]{20,100}"),
    (("atbb", "atatt3"), r"(?:ATBB|ATATT3)", r"[\w=-]{24,300}"),  # Atlassian
    (("xox",), r"xox[abeoprs](?:\.xox[bp])?-", r"[A-Za-z0-9-]{10,250}"),  # Slack
    (("xapp-",), r"xapp-", r"[A-Za-z0-9-]{20,250}"),
    (("aiza",), r"AIza", r"[\w-]{35}"),  # Google
    (("ya29.", "1//0"), r"(?:ya29\.|1//0)", r"[\w-]{20,500}"),
    (("gocspx-",), r"GOCSPX-", r"[\w-]{20,60}"),
    (("sk-",), r"sk-", r"(?=[a-z-]{0,20}[A-Z0-9])[A-Za-z0-9_-]{20,250}"),  # OpenAI, Anthropic and others
    # Of services with models
    (("gsk_", "xai-", "pplx-"), r"(?:gsk_|xai-|pplx-)", r"[\w-]{30,200}"),
    (("nvapi-", "r8_", "hf_"), r"(?:nvapi-|r8_|hf_)", r"[\w-]{30,200}"),
    (("k_live_", "k_test_"), r"[srp]k_(?:live|test)_", r"[A-Za-z0-9]{16,250}"),  # Stripe
    (("whsec_",), r"whsec_", r"[A-Za-z0-9+/=]{20,250}"),
    (("sq0",), r"sq0(?:csp|atp|idp)-", r"[\w-]{20,60}"),  # Square
    (("npm_",), r"npm_", r"[A-Za-z0-9]{36}"),
    (("pypi-",), r"pypi-", r"[\w-]{50,500}"),
    (("rubygems_",), r"rubygems_", r"[a-f0-9]{48}"),
    (("dapi",), r"dapi", r"[a-f0-9]{32}(?:-\d)?"),  # Databricks
    (("hvs.", "hvb.", "hvr."), r"hv[sbr]\.", r"[\w-]{20,300}"),  # Vault
    ((".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.", r"[\w=-]{50,100}"),  # Terraform
    (("pul-",), r"pul-", r"[a-f0-9]{40}"),
    (("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[\w.-]{30,100}"),  # Doppler
    (("sg.",), r"SG\.", r"[\w-]{16,40}\.[\w-]{30,60}"),  # SendGrid
    (("key-",), r"key-", r"[a-f0-9]{32}"),  # Mailgun
    (("sk",), r"SK", r"[a-f0-9]{32}"),  # Twilio
    (("eaa",), r"EAA", r"[A-Za-z0-9]{80,500}"),  # Facebook
    (("figd_", "lin_api_", "ntn_", "secret_"), r"(?:figd_|lin_api_|ntn_|secret_)", r"(?=\w*[0-9])[\w-]{36,60}"),
    (("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_", r"[a-f0-9]{64}"),
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_", r"[a-fA-F0-9]{32}"),  # Shopify
    (("sbp_",), r"sbp_", r"[a-f0-9]{40}"),
    (("glsa_", "glc_ey"), r"gl(?:sa_|c_ey)", r"\w{30,400}"),  # Grafana
    (("sntrys_", "ops_eyj"), r"(?:sntrys_|ops_)eyJ", r"[\w+/=-]{40,2000}"),  # Sentry, 1Password
    (("tskey-",), r"tskey-", r"[A-Za-z0-9-]{20,100}"),  # Tailscale
    (("nrak-", "nrii-", "nral-"), r"NR(?:AK|II|AL)-", r"[\w-]{20,60}"),  # New Relic
    (("pmak-",), r"PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    (("dckr_pat_",), r"dckr_pat_", r"[\w-]{20,60}"),
    (("age-secret-key-1",), r"AGE-SECRET-KEY-1", r"[0-9A-Z]{50,70}"),
    (("8q~", "7q~"), r"[\w.~-]{3}[78]Q~", r"[\w.~-]{31,36}"),  # Microsoft Entra
    ((":aa",), r"[0-9]{8,10}:AA", r"[\w-]{32,34}"),  # Telegram
    ((".",), r"[MNO](?=[\w-]{0,22}[0-9])[\w-]{22,28}\.[\w-]{6}\.", r"[\w-]{27,50}"),  # Discord
    (("eyj",), r"(?<![\w-])(?:[ps]k\.)?eyJ", r"[\w-]{8,2000}\.(?:eyJ)?[\w-]{8,10000}(?:\.[\w-]{0,2000}){0,3}"),  # a JWT
    (("hooks.",), r"hooks\.[\w.-]{1,60}/(?:services|workflows)/", r"[\w/-]{20,120}"),
    (("webhooks/",), r"webhooks/[0-9]{15,22}/", r"[\w/-]{20,120}"),
    (("ls0tls1crudjti",), r"LS0tLS1CRUdJTi", r"[A-Za-z0-9+/=\n ]{40,100000}"),  # "-----BEGIN" in base64
)  # fmt: skip

_HASHES: Final = (
    r"\$(?:apr1|[1567y]|2[abxy]?|argon2(?:id|i|d)|scrypt)\$[./A-Za-z0-9$=,+-]{20,300}"
    r"|\{S?(?:SHA|MD5)[0-9]{0,3}\}[A-Za-z0-9+/]{20,200}=*"
    r"|(?:pbkdf2|bcrypt|scrypt)[\w:]{0,20}\$[./A-Za-z0-9$=,+-]{30,300}"
)
"""Of passwords, as in `.htpasswd`, `/etc/shadow` and Django's tables."""

# Names, the text between them and a value, and values

_PASSWORD_WORD: Final = (
    r"(?:(?i:passw(?:or)?d|passwort|kennwort|passphrase|pwd)|(?<![A-Za-z])pw|(?<=[a-z])Pw"  # noqa: S105  an expression
    r"|(?<!by)(?<!om)(?<!ur)(?<!res)(?<!er)(?i:pass)(?![a-z]))"
)
_PASSWORD_NOUN: Final = rf"(?!(?<!\w)pass\b){_PASSWORD_WORD}"
"""Without `pass` by itself, which is a verb in prose and a statement in Python."""
_SUFFIX: Final = r"(?:[_-]?(?i:[0-9]{1,2}|prod(?:uction)?|dev|test|staging|old|new|live))?(?![A-Za-z0-9_])"
_PASSWORD: Final = _PASSWORD_WORD + _SUFFIX
_QUALIFIED: Final = "|".join(
    rf"(?<={kind})|(?<={kind}[_ -])"
    for kind in (
        "api", "access", "private", "account", "auth", "encryption", "signing", "shared", "secret", "master", "session",
        "service", "client", "storage", "license", "deploy", "cookie", "hmac", "webhook", "consumer", "app", "admin",
    )
)  # fmt: skip
"""The words before `key` in names of secret keys."""
_SECRET: Final = (
    rf"(?:{_PASSWORD_NOUN}|(?i:secret|token(?!iz)|credential|identified[ ]by|auth(?:orization)?(?![a-z])"
    rf"|(?:{_QUALIFIED})key))\w{{0,20}}"
)
_KEY: Final = r"(?:(?i:(?<![a-z])key)|(?<=[a-z])Key)(?![a-z])\w{0,20}"
_PASSWORD_NEEDLES: Final = ("pass", "pwd", "pw", "kennwort")
_SECRET_NEEDLES: Final = (*_PASSWORD_NEEDLES, "secret", "token", "credential", "key", "auth", "identified by")

_TYPE: Final = (
    r"(?::[ \t]{0,4}[A-Za-z][\w.]{0,30}(?:\[[\w., |\[\]]{0,40}\])?(?:[ \t]?\|[ \t]?\w{1,20})?[ \t]{0,8}(?==))?"
)
_ASSIGNED: Final = (
    rf"[\"'`)\]]{{0,3}}[ \t]{{0,8}}{_TYPE}(?:=>|:=|[=!]?==?|\|\|=?|\?\?=?|[:({{])[ \t]{{0,8}}\(?\s{{0,60}}"
)
_WORD_BETWEEN: Final = (
    r"\b(?:is|was|are|be|of|or|now|still|set|value|str|[Ss]tring|[Bb]asic|[Bb]earer|token)\b|-p\b"
    r"|\.(?:equals|compare)\w{0,20}\("
)
_BETWEEN: Final = (
    r"(?:[ \t](?:of|for|on|in|to)(?:[ \t][\w.-]{1,20}){1,4}?[ \t]?(?=[:=]|is\b|was\b))?"
    rf"(?:{_WORD_BETWEEN}|[\s\"'`*_:=>|,()?!\\\[\]+~-]){{1,24}}"
)
"""Punctuation and a few words, with which a text gives a value to a name."""
_ELSEWHERE: Final = (
    r"(?:[\"'](?:[^<>\n]{0,60}?|[ \t]{0,4}[,{]?\s{0,20})|[ \t]{0,4}\n[ \t]{0,40}[\"']?)"
    r"\b(?:value|default|content)[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
)
"""As in `<add key="password" value="…">`."""

_UNMARKED: Final = rf"(?!{re.escape(MARKER)})"
_QUOTED: Final = r"""[rbfuRBFU@]{0,2}(?P<quote>["'`])(?P<quoted>(?:(?!(?P=quote))[^\\\n]|\\.){6,2000})(?P=quote)"""
_BARE: Final = (
    rf"""{_UNMARKED}(?P<secret>[^\s"'`,;<>|()\[\]{{}}]{{5,999}}[^\s"'`,;<>|()\[\]{{}}.*:])(?=[\s"'`,;<>|)\]}}.*:]|$)"""
)
"""A value before a bracket is the name of a call, and no secret."""
_TO_THE_END: Final = rf"""{_UNMARKED}(?P<secret>(?!["'`])[^\s"'`][^\s]{{5,999}}?)[ \t]*(?:[ \t]\#.*)?$"""

RULES: Final = (
    RedactionRule(
        ("-----begin ", "---- begin "),
        (
            r"----[- ]BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
            r"(?:(?P<secret>(?:(?!-----)[\s\S]){1,20000})(?=-----END |---- END )"
            # Its end is missing:
            r"|(?P<quoted>[\s\"'\\nr,+#*>|/]{0,200}(?:\w+: [^\n]{0,100}\s+){0,4}"
            r"(?:[A-Za-z0-9+/=]{16,}[\s\"'\\nr,+#*>|/]{0,200}){1,1000}))"
        ),
        _has_key_data,
    ),
    RedactionRule(
        ("private-lines:",),
        (r"Private-Lines: [0-9]{1,3}\s+(?P<secret>(?:[A-Za-z0-9+/=]{16,}\s{0,9}){1,100})"),
    ),
    *(RedactionRule(needles, rf"(?<![A-Za-z0-9]){start}{rest}(?![A-Za-z0-9])") for needles, start, rest in _KEYS),
    RedactionRule(("$", "}"), _HASHES),
    RedactionRule(('"kty"',), (r'"(?:d|p|q|k)"\s*:\s*"(?P<secret>[\w-]{20,2000})"')),
    RedactionRule(
        ("://",),
        (r"://[^\s/?#@:\"'`<>]{0,100}:(?![0-9]{1,5}[/?#])(?P<secret>[^\s/\"'`<>]{1,300})@(?=[\w\[$.{-])"),
        _is_url_password,
    ),
    RedactionRule(("://",), (r"://(?P<secret>[^\s/?#@:\"'`<>]{16,300}):?@(?=[\w\[])"), _is_user_secret),
    RedactionRule(
        ("bearer", "basic ", "authorization"),
        (
            r"(?i:\b(?:bearer|basic|authorization:[ \t]{0,4}token)[ \t]{1,4})(?P<secret>[A-Za-z0-9+/=._~-]{12,2000})"
        ),
        is_random,
    ),
    RedactionRule(  # of connection strings and URLs
        ("password=", "pwd=", "key=", "sig=", "token=", "secret="),
        (
            r"(?i:[;?&](?:password|pwd|sig|\w{0,20}token|\w{0,20}secret|\w{0,20}key)=)(?P<secret>[^\s;&\"'#]{6,300})"
        ),
        _is_no_placeholder,
    ),
    # Whole lines, then literals, then anything of a sufficient shape.
    RedactionRule(
        _PASSWORD_NEEDLES,
        (rf"(?m)[ \t]*(?:[-*][ \t]+)?[\w.-]{{0,60}}{_PASSWORD}:[ \t]+{_TO_THE_END}"),
        is_bare_password,
        "at the line of the needle",
    ),
    RedactionRule(
        _PASSWORD_NEEDLES,
        (
            rf"(?m)(?:(?:export|ENV|ARG)[ \t]+)?[\w./:-]{{0,60}}{_PASSWORD}[ \t]{{0,8}}=[ \t]{{0,8}}{_TO_THE_END}"
        ),
        is_bare_password,
        "at the line of the needle",
    ),
    RedactionRule(
        ("passphrase",),
        (r"(?mi:passphrase[ \t]*[:=])[ \t]*(?P<secret>[a-z]{2,}(?: [a-z]{2,}){2,20})$"),
        is_password,
        "at the needle",
    ),
    RedactionRule(
        ("pass", "pwd", "--"),
        (
            rf"(?:(?:PASS(?:WORD|WD|PHRASE)?|PWD){_SUFFIX}=|--[\w. -]{{0,40}}?{_PASSWORD}=)"
            r"(?P<secret>[^\s\"'`,;)&]{6,300})"
        ),
        is_bare_password,
        "at the needle",
    ),
    RedactionRule(
        (*_PASSWORD_NEEDLES, "env ", "set", "--"),
        (
            rf"(?:--[\w-]{{0,40}}?{_PASSWORD}[ ]|(?:ENV|set\w*(?:[ ]-\w{{1,3}}){{0,2}})[ ]\w{{0,60}}?{_PASSWORD}[ ]"
            rf"|(?<=\S){_PASSWORD}[=:][ ]?|(?<=\S[ ]){_PASSWORD}(?:[=:]|[ ](?:is|was))[ ]?)"
            r"(?P<secret>[^\s\"'`,;)&]{6,300})(?=[\s;&\"'`]|$)"
        ),
        is_mixed_password,
        "at the needle",
    ),
    RedactionRule(
        ("password", "identified by"),
        (rf"(?:PASSWORD|(?i:identified by))[ ]{_QUOTED}"),
        is_password,
        "at the needle",
    ),
    RedactionRule(
        ("mysql", "mariadb"),
        (r"(?:mysql|mariadb)[^\n]{0,200}?[ ]-p(?P<secret>[^\s\"'`]{4,100})"),
        is_mixed_password,
        "at the needle",
    ),
    RedactionRule(
        ("curl",),
        (
            r"curl\b[^\n]{0,300}?[ ](?:-u|--user|--proxy-user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']{4,300})"
        ),
        is_bare_password,
        "at the needle",
    ),
    RedactionRule(
        ("auth",),
        (rf"(?i:auth)\w{{0,20}}[ \t]*=[ \t]*\w{{0,30}}\([ \t]*[\"'][^\"'\n]{{0,100}}[\"'],[ \t]*{_QUOTED}"),
        is_password,
        "at the needle",
    ),
    *(
        RedactionRule(needles, expression, accept, "at the needle")
        for needles, expression, accept in (
            (_PASSWORD_NEEDLES, _PASSWORD + _ASSIGNED + _QUOTED, is_password),
            (_PASSWORD_NEEDLES, _PASSWORD + _ELSEWHERE + _QUOTED, is_password),
            (_PASSWORD_NEEDLES, _PASSWORD + _ELSEWHERE + _BARE, is_bare_password),
            (_PASSWORD_NEEDLES, rf"{_PASSWORD}[ \t]{{0,4}}>(?P<secret>[^<\n]{{6,300}})</", is_password),
            (_PASSWORD_NEEDLES, _PASSWORD_NOUN + _SUFFIX + _BETWEEN + _QUOTED, is_mixed_password),
            (_SECRET_NEEDLES, rf"(?:{_SECRET}|{_KEY})(?:{_ELSEWHERE}|>){_QUOTED}", is_random),
            (_SECRET_NEEDLES, rf"(?:{_SECRET}|{_KEY})(?:{_ELSEWHERE}|>){_BARE}", is_bare_random),
            (_SECRET_NEEDLES, _SECRET + _ASSIGNED + _QUOTED, is_random),
            (_SECRET_NEEDLES, _SECRET + _BETWEEN + _QUOTED, is_bare_random),
            (_SECRET_NEEDLES, _SECRET + _BETWEEN + _BARE, is_bare_random),
            (("key",), _KEY + _ASSIGNED + _QUOTED, is_long_random),
            (("key",), _KEY + _ASSIGNED + _BARE, is_long_bare_random),
        )
    ),
)  # fmt: skip
