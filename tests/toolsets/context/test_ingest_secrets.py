"""Credentials in files never reach the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshore.redaction.rules import MARKER
from longshore.redaction.texts import remove_secrets
from longshore.toolsets.context.store import Store, open_store
from redaction.canaries import HEX, UPPER, canary

from .projects import put, run

BODY = "\n".join(canary(100 + line, 64) for line in range(6))

CANARIES: list[tuple[str, str, str]] = [
    # The file, its text with {} for the secret, and the secret.
    (".env", "A={}", canary(1)),
    ("deploy/.env.production", "A={}", canary(2)),
    ("server.pem", "{}", canary(3)),
    ("keys/id_rsa", "{}", canary(4)),
    ("tls.key", "{}", canary(5)),
    (".netrc", "machine x login y password {}", canary(6)),
    (".ssh/config", "# {}", canary(7)),
    ("rsa.txt", "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", BODY),
    ("cut.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", BODY + canary(8, 64)),
    ("key.py", 'KEY = "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----"\n', canary(9, 200)),
    ("account.json", '{{"k": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n"}}', canary(10, 300)),
    ("pgp.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----\n", canary(11, 64)),
    ("aws.py", 'client("{}")\n', "AKIA" + canary(12, 16, UPPER)),
    ("aws.ini", "aws_secret_access_key = {}\n", canary(13, 40)),
    ("aws.md", "Use `aws configure` with {}.\n", "ASIA" + canary(14, 16, UPPER)),
    ("github.md", "# Token\n\nlogin with {}\n", "ghp_" + canary(15)),
    ("github.yml", "run: curl -H 'x: {}'\n", "github_pat_" + canary(16, 60)),
    ("gitlab.sh", "git clone https://oauth2:{}@gitlab.example/x\n", "glpat-" + canary(17, 20)),
    ("slack.py", "def send():\n    post('{}')\n", "xoxb-123456789012-" + canary(18, 24)),
    ("slack_app.txt", "{}", "xapp-1-" + canary(19, 40)),
    ("google.js", "const map = load('{}')\n", "AIza" + canary(20, 35)),
    ("google_oauth.json", '{{"client_secret": "{}"}}', "GOCSPX-" + canary(21, 28)),
    ("openai.py", "import openai\nopenai.api_key = '{}'\n", "sk-" + canary(22, 48)),
    ("openai_project.txt", "{}", "sk-proj-" + canary(23, 60)),
    ("anthropic.sh", "export ANTHROPIC_API_KEY={}\n", "sk-ant-api03-" + canary(24, 80)),
    ("stripe.rb", "Stripe.key = '{}'\n", "sk_live_" + canary(25, 24)),
    ("npmrc.txt", "//registry.example/:_authToken={}\n", "npm_" + canary(26, 36)),
    ("pypirc.txt", "password = {}\n", "pypi-" + canary(27, 80)),
    ("hf.toml", 'x = "{}"\n', "hf_" + canary(28, 34)),
    ("sendgrid.cfg", "k: {}\n", f"SG.{canary(29, 22)}.{canary(30, 43)}"),
    ("jwt.http", "Cookie: session={}\n", f"eyJ{canary(31, 20)}.eyJ{canary(32, 40)}.{canary(33, 43)}"),
    ("bearer.http", "Authorization: Bearer {}\n", canary(34, 40)),
    ("basic.http", "Authorization: Basic {}\n", canary(35, 32) + "=="),
    ("settings.py", 'class S:\n    """S."""\n    PASSWORD: str = "{}"\n', "Tr0ub4dor&3-" + canary(36, 6)),
    ("phrase.py", 'password = "{}"\n', "correct horse battery staple " + canary(37, 8)),
    ("app.yaml", "db:\n  password: {}\n", canary(38, 14) + "7"),
    ("app.properties", "service.api-key={}\n", canary(39, 32, HEX)),
    ("url.py", 'DB = "postgresql://app:{}@db.example:5432/app"\n', canary(40, 12)),
    ("redis.env.txt", "REDIS=redis://:{}@cache:6379/0\n", canary(41, 16)),
    ("mssql.config", "Server=x;Database=y;User Id=z;Password={};\n", canary(42, 14)),
    ("azure.json", '{{"c": "DefaultEndpointsProtocol=https;AccountKey={};Suffix=x"}}', canary(43, 60) + "=="),
    ("call.py", "login(user='u', token='{}')\n", canary(44, 40, HEX)),
    ("map.py", "X = {{'secret': '{}', 'b': 1}}\n", canary(45, 24)),
    ("signed.md", "[x](https://h.example/f?sig={}&v=1)\n", canary(46, 40)),
    ("pom.xml", "<server><password>{}</password></server>\n", "Xy7-" + canary(47, 12)),
    ("docstring.py", 'def f():\n    """Call with password={} only."""\n', canary(48, 15) + "8"),
]  # fmt: skip


def test_there_are_enough_different_canaries() -> None:
    assert len({secret for _, _, secret in CANARIES}) == len(CANARIES) >= 40


def test_no_canary_is_in_the_bytes_of_the_database(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for path, text, secret in CANARIES:
        put(root / path, text.format(secret) if "{}" in text else text)
        assert secret in (root / path).read_text()
    place = tmp_path / "context.db"
    store = open_store(str(place))
    report = run(store, root)
    denied = 7
    assert report.added == len(CANARIES) - denied and report.secrets >= report.added
    run(store, root)
    data = b"".join(file.read_bytes() for file in tmp_path.glob("context.db*")).lower()
    assert b"docstring.py" in data and b"secret removed" in data
    for path, _, secret in CANARIES:
        # Words are stored in lower case, and identifiers by their parts too.
        for line in secret.lower().split("\n"):
            for part in (line, line[4:16], line[-12:]):
                assert part.encode() not in data, path
    store.close()


@pytest.mark.parametrize(
    "text",
    [
        'password = "password"',
        'password = getpass("Password: ")',
        'PASSWORD_HELP = "Enter your password"',
        "password = os.environ['DB_PASSWORD']",
        "password: str | None = None",
        "token = self.next_token2()",
        "token = tokens.next3",
        'token = "identifier"',
        "api_key: ${API_KEY_2}",
        'api_key = "<your api key 1>"',
        "postgresql://user:${PASSWORD}@host/db",
        "see https://host.example:8080/path and me@host.example",
        "the secret: nobody knows",
        "skip-this-long-word-with-dashes-everywhere",
        "def test_token_expires_after_3600_seconds(): pass",
        "key = sorted(values, key=lambda v: v[0])",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert remove_secrets(text) == (text, 0)


def test_lines_stay_where_they_are() -> None:
    text = f"a\n-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----\nb\n"
    removed, count = remove_secrets(text)
    assert (removed.count("\n"), count) == (text.count("\n"), 1)
    assert removed.startswith(f"a\n-----BEGIN PRIVATE KEY-----{MARKER}\n") and removed.endswith("\nb\n")


def test_a_python_file_is_still_parsed_without_its_secrets(store: Store, tmp_path: Path) -> None:
    put(tmp_path / "p/a.py", f'def connect():\n    return open_db(password="{canary(50, 20)}")\n')
    report = run(store, tmp_path / "p")
    assert (report.functions, report.secrets, report.problems) == (1, 1, [])
