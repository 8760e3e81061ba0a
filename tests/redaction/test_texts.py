"""Which lines hold a credential. The lines were written before the rules that they test."""

from __future__ import annotations

import ast
import asyncio
import base64
from pathlib import Path

import pytest

from longshore.redaction.rules import MARKER
from longshore.redaction.texts import remove_secrets

from .canaries import HEX, UPPER, canary

_PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{canary(300, 64)}\n{canary(301, 64)}\n-----END RSA PRIVATE KEY-----\n"
_BASE64 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"

ASSIGNED = [
    # Text with {} for the secret, and the secret.
    ("AWS_SECRET_ACCESS_KEY={}", "/" + canary(1, 39, _BASE64)),
    ("aws_secret_access_key = {}", canary(2, 20, _BASE64) + "/" + canary(3, 19, _BASE64)),
    ("export DISCORD_TOKEN={}", f"MTk4{canary(4, 20)}.Cl2FMQ.{canary(5, 27)}"),
    ("export PGPASSWORD='{}'", "hunter2!x"),
    ("PGPASSWORD={} psql -h db.example", "hunter2-horse9"),
    ("set -x PGPASSWORD {}", "hunter2-horse9"),
    ('$env:API_KEY = "{}"', canary(6, 32)),
    ("setx GITHUB_PAT_TOKEN {}", canary(7, 40)),
    ("docker run -e POSTGRES_PASSWORD={} postgres:16", "Sup3r-blah"),
    ("ENV DB_PASSWORD={}", "correcthorsebattery"),
    ("ENV DB_PASSWORD {}", "h0rseB4ttery"),
    ("      - MYSQL_ROOT_PASSWORD={}", "correcthorsebattery"),
    ("ARG NPM_TOKEN={}", canary(8, 36, HEX)),
    ("password: {}", "correcthorsebattery"),
    ("  db_pass: {}", "hunter22"),
    ("  secretKey: {}", "Qw3rtyUiop3"),
    ("env:\n  PASS: {}", "Qw3rtyUiop1"),
    ("mail_pw: {}", "Zx81kkQ2wq"),
    ("smtp:\n    password: {}   # ask Tom", "Tr0ub4dor.Four"),
    ("    token: {}", "abcDEF123456789xyz"),
    ("password: >-\n    {}", "s3cr3tValue99"),
    ("data:\n  password: {}", base64.b64encode(b"correct horse battery").decode()),
    ("spring.datasource.password={}", "Xk29plQ2"),
    ("db.password={}", "tigerlily"),
    ("password = {}", "correcthorse"),
    ("password={}", "a;b,c<d>9xQ"),
    ("PASSWORD={}", "12345678"),
    ('password = "{}"', "$tr0ngP@ssw0rd9"),
    ('password: "{}"', "%Xk29!plQ2"),
    ('password = "{}"', "correcthorsebattery"),
    ('password = "{}"', "correct-horse-battery-staple"),
    ('"password": "{}"', "letmein"),
    ("api_key = '''{}'''", canary(9, 32)),
    ('{{"apiKey":"{}"}}', canary(10, 32, HEX)),
    ('"private_key_id": "{}",', canary(11, 40, HEX)),
    ("PrivateKey = {}", canary(12, 43, _BASE64) + "="),
    ("//registry.example/:_auth={}", canary(13, 40, _BASE64) + "=="),
    ("Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey={}", canary(14, 43, _BASE64) + "="),
    ("jdbc:mysql://h/db?user=root&password={}&useSSL=no", "tigerlily9"),
    ('psql "host=db user=x password={} dbname=y"', "Qw3rtyUiop"),
    ("-Djavax.net.ssl.keyStorePassword={}", "ch4ngeit!"),
    ('Auth0 "client_secret" : "{}"', canary(15, 64)),
    ("JWT_SECRET={}", canary(16, 64, HEX)),
    ("DB_PASSWORD_STAGING={}", "Winter2025!x"),
    ("password2: '{}'", "Winter2025!y"),
    ("otp_secret = {}", canary(17, 32, UPPER)),
    ("SECRET_KEY = 'django-insecure-{}'", "k3$x@9!w&^zq0" + canary(18, 20)),
    ("passphrase: {}", "correct horse battery staple"),
    ("machine h.example login u password {}", "Xk29plQ2"),
    ("variable \"db_password\" {{\n  default = \"{}\"\n}}", "Winter2025x"),
    ("- name: DB_PASSWORD\n  value: {}", "Winter2025x"),
    ('{{"name": "API_TOKEN", "value": "{}"}}', canary(19, 30)),
    ('{{"key":"password","value":"{}"}}', "tr0ub4dor"),
]  # fmt: skip

IN_CODE = [
    ("cfg['password'] = '{}'", "tr0ub4dor&0x"),
    ('config["db"]["password"] = "{}"', "hunter2horse"),
    ('os.environ["API_TOKEN"] = "{}"', canary(30, 32)),
    ('os.environ.setdefault("SECRET_KEY", "{}")', canary(31, 50)),
    ('os.getenv("DB_PASSWORD", "{}")', "Winter2025x"),
    ('const secret = process.env.SECRET || "{}";', canary(32, 32)),
    ('const token = process.env.TOKEN ?? "{}"', canary(33, 32)),
    ('password: Final[str] = "{}"', "tr0ub4dor"),
    ('password: str | None = "{}"', "correcthorse"),
    ('const password: string = "{}";', "tr0ub4dor"),
    ('private static final String DB_PASSWORD = "{}";', "tr0ub4dor"),
    ('std::string password{{"{}"}};', "tr0ub4dor9"),
    ('char *password = "{}";', "swordfish"),
    ('NSString *password = @"{}";', "swordfish"),
    ("let password = `{}`", "swordfish"),
    ('password := "{}"', "swordfish"),
    (":password => '{}',", "swordfish"),
    ("define('DB_PASSWORD', '{}');", "Sw0rdfish!"),
    ("$password = '{}';", "swordfish"),
    ('my $pass = "{}";', "swordfish"),
    ('PASSWORD = ("{}")', "swordfish"),
    ('PASSWORD = (\n    "{}"\n)', "sw0rdf1sh"),
    ('pw = "{}"', "sw0rdf1sh"),
    ("d = dict(password='{}')", "Qw3rtyUiop7"),
    ('requests.get(url, auth=("user", "{}"))', "Qw3rtyUiop8"),
    ('if password == "{}":', "swordfish"),
    ('if (password.equals("{}"))', "sw0rdf1sh"),
    ('client.setPassword("{}");', "sw0rdf1sh"),
    ('Builder().user("x").password("{}")', "swordfish"),
    ("user.set_password('{}')", "swordfish"),
    ("CREATE USER bob WITH PASSWORD '{}';", "sw0rdf1sh"),
    ("CREATE USER bob IDENTIFIED BY '{}';", "sw0rdf1sh"),
    ("# the old token was {}", canary(34, 32, HEX)),
    ('headers = {{"X-Api-Key": "{}"}}', canary(35, 32, HEX)),
    ("tool --password {} --verbose", "Winter2025!x"),
    ("tool --password={}", "correcthorse"),
    ("tool --api-key {}", canary(36, 24)),
    ("sshpass -p '{}' ssh host", "Winter2025!x"),
    ("curl -u admin:{} https://h.example", "S3cr3tPw!"),
    ("curl --user bob:{} https://h.example", "hunter2horse"),
    ("curl -H 'PRIVATE-TOKEN: {}'", canary(37, 20)),
    ("curl -H 'Authorization: token {}'", canary(38, 40, HEX)),
    ("openssl rsa -passin pass:{}", "hunter22x"),
    ('"kty":"EC","crv":"P-256","d":"{}"', canary(39, 43)),
    ("cookie_secret: '{}'", canary(40, 32)),
]  # fmt: skip

IN_PROSE = [
    ("The staging password is `{}`.", "tr0ub4dor&3x"),
    ("The password of the router is {}.", "tr0ub4dor3x"),
    ("- **Password:** {}", "tr0ub4dor&4x"),
    ("**Password**: `{}`", "swordfish99"),
    ("* API key: {}", canary(60, 32)),
    ("| password | {} |", "tr0ub4dor&5x"),
    ("| user | bob |\n| API key | `{}` |", canary(61, 32, HEX)),
    ('<property name="password" value="{}"/>', "tr0ub4dor&7x"),
    ('<add key="ApiSecret" value="{}" />', canary(62, 32)),
    ('<input type="password" name="pw" value="{}">', "swordfish9"),
    ("<password>{}</password>", "swordfish"),
    ('<user password="{}"/>', "swordfish"),
    ("<dbPassword>{}</dbPassword>", "Sw0rdfish"),
    ("Kennwort: {}", "Geheim123"),
    ("The root password is now '{}'.", "Geheim123"),
    ("user: root / password: {}", "Geheim123"),
    ("mysql -u root -p{} db", "Sommer2024!"),
    ("Log in with token {} (valid until May).", canary(63, 40, HEX)),
    ("Passphrase: \"{}\"", "correct horse battery staple"),
]  # fmt: skip

URLS = [
    ("redis://:{}@h:6379", "$3cretPw77"),
    ("postgres://u:{}@db/x", "pa@ss9word"),
    ("postgresql+asyncpg://u:{}@db:5432/x", "swordfish"),
    ("mongodb+srv://u:{}@cluster0.example.net", "p:a:s@s9"),
    ("mysql://root:{}@127.0.0.1/x", "pa?ss#9w"),
    ("https://{}@github.com/x/y.git", canary(80, 40, HEX)),
    ("https://x-access-token:{}@github.com/x/y.git", canary(81, 40)),
    ("https://{}@o1.ingest.sentry.io/2", canary(82, 32, HEX)),
    ("ftp://bob:{}@h.example/f", "tigerlily"),
    ("git clone https://bob:{}@h.example/x", "$HOMEr9!"),
    ("https://hooks.slack.com/services/{}", f"T0{canary(83, 8, UPPER)}/B0{canary(84, 8, UPPER)}/{canary(85, 24)}"),
    ("https://discord.com/api/webhooks/123456789012345678/{}", canary(86, 68)),
    ("https://h.example/cb?access_token={}&x=1", canary(87, 30)),
]  # fmt: skip

KEYS = [
    ("x {} y", "hvs." + canary(100, 90)),
    ("x {} y", "lin_api_" + canary(101, 40)),
    ("x {} y", "dapi" + canary(102, 32, HEX)),
    ("x {} y", "ATATT3" + canary(103, 186)),
    ("x {} y", "gsk_" + canary(104, 52)),
    ("x {} y", "123456789:AA" + canary(105, 33)),
    ("x {} y", "rk_live_" + canary(106, 24)),
    ("x {} y", "glrt-" + canary(107, 20)),
    ("x {} y", "rubygems_" + canary(108, 48, HEX)),
    ("x {} y", "figd_" + canary(109, 40)),
    ("x {} y", "ntn_" + canary(110, 46)),
    ("x {} y", "dp.pt." + canary(111, 43)),
    ("x {} y", "pul-" + canary(112, 40, HEX)),
    ("x {} y", "nvapi-" + canary(113, 64)),
    ("x {} y", "r8_" + canary(114, 37)),
    ("x {} y", "xai-" + canary(115, 80)),
    ("x {} y", "pplx-" + canary(116, 48)),
    ("x {} y", "sbp_" + canary(117, 40, HEX)),
    ("x {} y", "glsa_" + canary(118, 32) + "_" + canary(119, 8, HEX)),
    ("x {} y", "sntrys_eyJ" + canary(120, 80)),
    ("x {} y", "ops_eyJ" + canary(121, 250)),
    ("x {} y", "tskey-auth-" + canary(122, 17) + "-" + canary(123, 32)),
    ("x {} y", "NRAK-" + canary(124, 27, UPPER)),
    ("x {} y", "LTAI" + canary(125, 20)),
    ("x {} y", "EAA" + canary(126, 120)),
    ("x {} y", "sq0csp-" + canary(127, 43)),
    ("x {} y", "PMAK-" + canary(128, 24, HEX) + "-" + canary(129, 34, HEX)),
    ("x {} y", canary(130, 14) + ".atlasv1." + canary(131, 60)),
    ("x {} y", "xoxe.xoxp-1-" + canary(132, 100)),
    ("x {} y", "1//0" + canary(133, 60)),
    ("x {} y", "abc8Q~" + canary(134, 34)),
    ("x {} y", f"MTk4{canary(135, 20)}.Cl2FMQ.{canary(136, 38)}"),
    ("x {} y", "ATBB" + canary(137, 32)),
    ("x {} y", "sk.eyJ" + canary(138, 60) + "." + canary(139, 22)),
    ("x {} y", "secret_" + canary(140, 43)),
    ("x {} y", "key-" + canary(141, 32, HEX)),
    ("x {} y", "SK" + canary(142, 32, HEX)),
    ("x {} y", "ABIA" + canary(143, 16, UPPER)),
]  # fmt: skip

FILES = [
    ("client-key-data: {}", base64.b64encode(_PEM.encode()).decode()),
    ("PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nPrivate-Lines: 1\n{}\nPrivate-MAC: 1\n", canary(200, 64)),
    ("bob:{}", "$apr1$x1y2z3a4$Qe0aWZk8kJH1mQz9sB0aB/"),
    ("bob:{}", "$2y$05$" + canary(201, 53)),
    ("root:{}:19000:0:99999:7:::", "$6$" + canary(202, 8) + "$" + canary(203, 86)),
    ("bob:{{SSHA}}{}", canary(204, 32, _BASE64)),
    ("x = '{}'", "pbkdf2_sha256$260000$" + canary(205, 12) + "$" + canary(206, 43) + "="),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: x (y)\n\n{}", canary(207, 64)),
    ("key: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    {}\n    -----END OPENSSH PRIVATE KEY-----", canary(208, 70)),
    ('K = ("-----BEGIN PRIVATE KEY-----\\n"\n     "{}\\n"\n     "-----END PRIVATE KEY-----")', canary(209, 64)),
    ("# -----BEGIN EC PRIVATE KEY-----\n# {}\n", canary(210, 64)),
    ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{}\n---- END SSH2 ENCRYPTED PRIVATE KEY", canary(211, 64)),
]  # fmt: skip

LEAKS = [*ASSIGNED, *IN_CODE, *IN_PROSE, *URLS, *KEYS, *FILES]


@pytest.mark.parametrize(("text", "secret"), LEAKS, ids=[f"{n} {text[:40]}" for n, (text, _) in enumerate(LEAKS)])
def test_a_credential_is_removed(text: str, secret: str) -> None:
    removed, count = remove_secrets(text.format(secret))
    assert count >= 1 and MARKER in removed
    left = removed.replace(MARKER, "\n")
    for start in range(max(1, len(secret) - 5)):
        assert secret[start : start + 6] not in left


INNOCENT = [
    "Passwords are hashed with argon2id; the parameters are in docs/security.md.",
    "The token expires after 3600 seconds, the refresh token after 30 days.",
    "Tokens are JWTs, signed with Ed25519.",
    "A secret is rotated every 90 days (see ADR-0012).",
    "The password must have at least 12 characters, one of them a digit.",
    "the secret: nobody knows",
    "Key rotation happens at 03:00; the key id is in the header.",
    "API key: see the vault",
    "| password | string | required |",
    "| token | the token of the session | since 2.4.1 |",
    "# How to reset a password",
    "Use `--password-stdin` to pass it.",
    "It listens on https://host.example:8080/path?x=1 and mails me@host.example",
    "ssh://git@github.com/x/y.git",
    "https://bob@host.example/inbox",
    "The compass: north-west-by-north, the bypass: open",
    "See commit 674120a4b3f2e1d0c9b8a7968574635241302f1e for the token fix.",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-z8pXQ0Yb5xq1nGJrj5v5u1yJwq0nN9mXo2wzTqk3yWn8kQe2n1r0sC3dF4gH5jK6lM7nO8pQ9rS0tU1vW2xY3z=="',
    "id: 123e4567-e89b-12d3-a456-426614174000",
    "skip-this-long-word-with-dashes-everywhere",
    "2026-11-18T21:01:30Z INFO token refreshed for user 4711 in 12 ms",
    'password = "password"',
    'password = getpass("Password: ")',
    'PASSWORD_HELP = "Enter your password"',
    "password = os.environ['DB_PASSWORD']",
    'password = os.getenv("DB_PASSWORD")',
    "password: str | None = None",
    "password: string;",
    "password: Optional[SecretStr] = None",
    "    password=self.password,",
    "    password = passphrase",
    "    password=passphrase\n)",
    "    'password': passphrase\n}",
    "password = config.database.password",
    "password = hash_password(password1)",
    "token = self.next_token2()",
    "token = tokens.next3",
    "token = lexer.tokens[index + 1]",
    "token = next(tokenizer)",
    'token = "identifier"',
    'token_type = "bearer"',
    'grant_type = "refresh_token"',
    'api_key = "api_key_2"',
    'secret_name = "projects/x/secrets/database"',
    "api_key: ${API_KEY_2}",
    "api_key: ${{ secrets.API_KEY_2 }}",
    "password: {{ vault_db_password }}",
    "password: $DB_PASSWORD",
    "password: %DB_PASSWORD%",
    "password: *default_password",
    'api_key = "<your api key 1>"',
    'password = "{user}:{password}"',
    'f"password={password}"',
    'logger.info("password=%s", password)',
    'raise ValueError("wrong password")',
    'errors["password"] = "The password is too short."',
    '"forgotPassword": "Have you forgotten your password?"',
    'fields = ["username", "password", "email_address"]',
    'fields = ("password", "first_name")',
    '<input type="password" name="password" autocomplete="current-password">',
    '<label for="password">Password</label>',
    '"password": {"type": "string", "minLength": 8}',
    "type Token struct { Kind TokenKind; Value string }",
    "for token in tokenize.generate_tokens(readline):",
    "if token.type == tokenize.NAME and token.string == 'def':",
    "TOKEN_BUDGET = 20_000",
    "max_tokens: 2000",
    "CHARACTERS_PER_TOKEN = 4",
    "def test_token_expires_after_3600_seconds(): pass",
    "key = sorted(values, key=lambda v: v[0])",
    'cache_key = f"user:{user_id}:profile"',
    'key = "user_profile_v2"',
    "primary_key=True, sort_key='created_at'",
    "KEY_FILE=/etc/ssl/private/server2.key",
    "token_file: /run/secrets/api_token_v2",
    "password_file = /run/secrets/db_password_2",
    "secretKeyRef:\n  name: db-secret\n  key: password",
    "token_url: https://login.example/oauth2/v2/token",
    "from longshore.auth.tokens import TokenVerifier2",
    "redis://localhost:6379/0",
    "postgresql://user:${PASSWORD}@host/db",
    "postgresql://user:<password>@host/db",
    "postgres://{user}:{password}@{host}/{name}",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "It looks for `-----BEGIN PRIVATE KEY-----` in the text.",
    "The data key is in `client-key-data`.",
    "Bearer tokens are defined in RFC 6750.",
    "Authorization: Bearer <token>",
    "The basic authentication scheme",
    "curl -u admin https://h.example",
    "git push -u origin feature/token-cache-2",
    "sk-learn and task-queue-for-background-workers-of-the-project",
    "x = $1$2",
]  # fmt: skip


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_credential_stays(text: str) -> None:
    assert remove_secrets(text) == (text, 0)


def test_code_is_still_parsed_and_keeps_its_words() -> None:
    removed, files = 0, sorted(Path(asyncio.__file__).parents[1].glob("[g-n]*.py"))
    for file in files:
        text, count = remove_secrets(file.read_text(encoding="utf-8"))
        ast.parse(text)
        removed += count
    assert len(files) > 20 and removed <= 1


@pytest.mark.parametrize(
    "repeated",
    [
        "password", "password: ", "token = '", 'token "', "key=", "-----BEGIN PRIVATE KEY-----", "LS0tLS1CRUdJTi", "://a:",
        "curl -u a:", "mysql -p", "eyJaaaaaaaa.", "passwd\n  value:", '"password" ', "secret of the ", "$2a$", "--pw ",
    ],
)  # fmt: skip
@pytest.mark.timeout(60)  # a pattern that goes back and forth would take hours
def test_no_text_takes_long(repeated: str) -> None:
    remove_secrets(repeated * (100_000 // len(repeated)))
