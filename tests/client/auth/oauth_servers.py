"""Servers on loopback: authorization servers that check their requests, and an MCP server that asks for tokens.

All is real HTTP. A test can change the metadata of a server at any time; each server records its requests.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

from longshore.http_client.pool import HttpClient

Pairs = dict[str, str]


class Received(NamedTuple):
    """One request."""

    method: str
    path: str
    query: Pairs
    headers: Pairs
    body: bytes

    @property
    def form(self) -> Pairs:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


class Reply(NamedTuple):
    """One answer."""

    status: int
    document: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class Refused(Exception):
    def __init__(self, error: str, description: str = "", status: int = 400, **headers: str) -> None:
        super().__init__(error)
        self.said = Reply(status, {"error": error, "error_description": description}, tuple(headers.items()))


class LoopbackServer:
    """An HTTP server. `handle` answers; `asked` is all that came."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Received] = []
        self.lock = Lock()

    def handle(self, received: Received) -> Reply:
        raise NotImplementedError

    def paths(self, *, method: str = "") -> list[str]:
        return [each.path for each in self.asked if method in ("", each.method)]

    def count(self, path: str) -> int:
        return self.paths().count(path)


def thumb(jwk: dict[str, Any]) -> str:
    return b64(
        sha256(json.dumps({n: jwk[n] for n in ("crv", "kty", "x", "y")}, separators=(",", ":")).encode()).digest()
    )


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


class Proofs:
    """Checks DPoP proofs, as RFC 9449 says, and remembers which were used."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.nonce: str | None = None

    def check(self, received: Received, url: str, token: str | None) -> str:
        """The thumbprint of the key. Raises Refused."""
        proof = received.headers.get("dpop", "")
        if not proof:
            raise Refused("invalid_dpop_proof", "no proof")
        head = json.loads(b64decode(proof.split(".")[0] + "=="))
        assert head["typ"] == "dpop+jwt" and head["alg"] == "ES256" and "d" not in head["jwk"], head
        claims = jwt.decode(proof, ECKey.import_key(head["jwk"]), algorithms=["ES256"]).claims
        assert claims["htm"] == received.method and claims["htu"] == url, claims
        assert abs(time.time() - claims["iat"]) < 60
        assert claims["jti"] not in self.used, "a proof was used twice"
        self.used.add(claims["jti"])
        if token is not None:
            assert claims["ath"] == b64(sha256(token.encode()).digest())
        if self.nonce is not None and claims.get("nonce") != self.nonce:
            raise Refused("use_dpop_nonce", "", 400 if token is None else 401, **{"DPoP-Nonce": self.nonce})
        return thumb(head["jwk"])


class AuthorizationServer(LoopbackServer):
    """An authorization server. It answers at the places in `places`, with `metadata` over what it says by itself."""

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path
        self.metadata: dict[str, Any] = {}
        self.places = {"/.well-known/oauth-authorization-server" + path}
        self.iss: str | None = None
        """The `iss` of its answers; None: none."""
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, Any]] = {}
        self.refresh_tokens: dict[str, dict[str, Any]] = {}
        self.tokens: dict[str, dict[str, Any]] = {}
        self.seconds: int | None = 3600
        self.gives_refresh = True
        self.rotates = True
        self.dpop = Proofs()
        self.bound = False
        """Whether it binds tokens to keys."""
        self.public_keys: dict[str, Any] = {}
        self.refusal: Refused | None = None
        self.number = count(1)
        self.before_token: Callable[[], None] = lambda: None

    @property
    def issuer(self) -> str:
        return self.url + self.path

    def about(self) -> dict[str, Any]:
        own = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "response_types_supported": ["code"],
            **self.metadata,
        }
        return {name: value for name, value in own.items() if value is not None}

    def handle(self, received: Received) -> Reply:
        if received.path in self.places:
            return Reply(200, self.about())
        doors = {"/register": self.register, "/authorize": self.authorize, "/token": self.token}
        door = doors.get(received.path.removeprefix(self.path))
        return door(received) if door else Reply(404, {"error": "not found"})

    def register(self, received: Received) -> Reply:
        asked = json.loads(received.body)
        assert asked["redirect_uris"] and asked["application_type"] in ("native", "web")
        assert "refresh_token" in asked["grant_types"]
        client_id = f"client-{next(self.number)}"
        given = {**asked, "client_id": client_id}
        if asked["token_endpoint_auth_method"] != "none":
            given["client_secret"] = f"secret-{client_id}"
        self.clients[client_id] = given
        return Reply(201, given)

    def authorize(self, received: Received) -> Reply:
        query = received.query
        client = self.clients[query["client_id"]]
        assert query["redirect_uri"] in client["redirect_uris"], query
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256" and query["state"]
        code = f"code-{next(self.number)}"
        self.codes[code] = query
        answer = {"code": code, "state": query["state"], **({} if self.iss is None else {"iss": self.iss})}
        return Reply(302, None, (("Location", f"{query['redirect_uri']}?{urlencode(answer)}"),))

    def token(self, received: Received) -> Reply:
        with self.lock:
            self.before_token()
            try:
                if self.refusal is not None:
                    raise self.refusal
                form, client_id = received.form, self.client_of(received)
                jkt = self.dpop.check(received, f"{self.issuer}/token", None) if self.bound else None
                return Reply(200, self.grant(form, client_id, jkt), (("Cache-Control", "no-store"),))
            except Refused as refused:
                return refused.said

    def client_of(self, received: Received) -> str | None:
        """The authenticated client, by the agreed method."""
        form, header = received.form, received.headers.get("authorization", "")
        if header.startswith("Basic "):
            client_id, secret = map(unquote_plus, b64decode(header[6:]).decode().split(":", 1))
            way: tuple[str, str | None] = ("client_secret_basic", secret)
        elif "client_assertion" in form:
            client_id, way = self.signed(form["client_assertion"]), ("private_key_jwt", None)
        elif "client_id" in form:
            client_id = form["client_id"]
            way = ("client_secret_post", form["client_secret"]) if "client_secret" in form else ("none", None)
        else:
            return None
        client = self.clients.get(client_id)
        if client is None or way[0] != client["token_endpoint_auth_method"] or way[1] != client.get("client_secret"):
            raise Refused("invalid_client", f"not {way[0]}", 401)
        return client_id

    def signed(self, assertion: str) -> str:
        claims = json.loads(b64decode(assertion.split(".")[1] + "=="))
        key = self.public_keys[claims["iss"]]
        head = json.loads(b64decode(assertion.split(".")[0] + "=="))
        jwt.decode(assertion, key, algorithms=[head["alg"]])
        assert claims["sub"] == claims["iss"] and claims["aud"] == self.issuer and claims["exp"] > time.time()
        return str(claims["iss"])

    def grant(self, form: Pairs, client_id: str | None, jkt: str | None) -> dict[str, Any]:
        match form["grant_type"]:
            case "authorization_code":
                asked = self.codes.pop(form["code"], None)
                if asked is None or asked["client_id"] != client_id or asked["redirect_uri"] != form["redirect_uri"]:
                    raise Refused("invalid_grant", "the code is not good")
                if b64(sha256(form["code_verifier"].encode()).digest()) != asked["code_challenge"]:
                    raise Refused("invalid_grant", "the verifier does not fit")
                if asked.get("resource") != form.get("resource"):
                    raise Refused("invalid_target", "another resource")
                held = {"client": client_id, "scope": asked.get("scope", ""), "resource": asked.get("resource")}
            case "refresh_token":
                found = self.refresh_tokens.get(form["refresh_token"])
                if found is None or found["client"] != client_id or found["jkt"] != jkt:
                    raise Refused("invalid_grant", "the refresh token is not good")
                assert form.get("resource") == found["resource"]
                if self.rotates:
                    del self.refresh_tokens[form["refresh_token"]]
                held = {name: found[name] for name in ("client", "scope", "resource")}
            case "client_credentials":
                held = {"client": client_id, "scope": form.get("scope", ""), "resource": form.get("resource")}
            case "urn:ietf:params:oauth:grant-type:jwt-bearer":
                if form["assertion"] not in self.public_keys:
                    raise Refused("invalid_grant", f"{form['assertion']} is not good")
                held = {"client": client_id, "scope": form.get("scope", ""), "resource": form.get("resource")}
            case _:
                raise Refused("unsupported_grant_type")
        return self.issue({**held, "jkt": jkt})

    def issue(self, held: dict[str, Any]) -> dict[str, Any]:
        number = next(self.number)
        access = f"access-{number}-of-{self.url.rpartition(':')[2]}"
        self.tokens[access] = held
        given: dict[str, Any] = {"access_token": access, "token_type": "DPoP" if held["jkt"] else "Bearer"}
        if held["scope"]:
            given["scope"] = held["scope"]
        if self.seconds is not None:
            given["expires_in"] = self.seconds
        if self.gives_refresh and (self.rotates or not self.refresh_tokens):
            given["refresh_token"] = f"refresh-{number}"
            self.refresh_tokens[given["refresh_token"]] = held
        return given


class ProtectedServer(LoopbackServer):
    """An MCP server of the handshake era with one tool, `hello`."""

    def __init__(self, *authorities: AuthorizationServer) -> None:
        super().__init__()
        self.authorities = list(authorities)
        self.metadata: dict[str, Any] | None = {}
        self.places = {"/.well-known/oauth-protected-resource/mcp"}
        self.named: str | None = None
        """The metadata's URL in challenges."""
        self.scope: str | None = None
        self.needs: dict[str, set[str]] = {}
        """The scopes that a method needs."""
        self.dpop: Proofs | None = None
        self.refuses_all = False

    @property
    def mcp(self) -> str:
        return self.url + "/mcp"

    def about(self) -> dict[str, Any]:
        own = {"resource": self.mcp, "authorization_servers": [each.issuer for each in self.authorities]}
        found = {**own, **(self.metadata or {})}
        return {name: value for name, value in found.items() if value is not None}

    def handle(self, received: Received) -> Reply:
        if received.path in self.places and self.metadata is not None:
            return Reply(200, self.about())
        if received.path != "/mcp":
            return self.elsewhere(received)
        if received.method != "POST":
            return Reply(405)
        message = json.loads(received.body)
        refused = self.refused(received, message["method"])
        return refused or self.answer(message)

    def elsewhere(self, received: Received) -> Reply:
        return Reply(404, {"error": "not found"})

    def refused(self, received: Received, method: str) -> Reply | None:
        kind, _, token = received.headers.get("authorization", "").partition(" ")
        held = {name: value for each in self.authorities for name, value in each.tokens.items()}.get(token)
        if held is None or self.refuses_all or held["resource"] not in (self.mcp, self.url, None):
            return self.challenge(401, **({"error": "invalid_token"} if token else {}))
        if (kind == "DPoP") != bool(held["jkt"]):
            return self.challenge(401, error="invalid_token")
        if self.dpop is not None:
            try:
                assert self.dpop.check(received, self.mcp, token) == held["jkt"]
            except Refused as refused:
                return self.challenge(401, error=refused.said.document["error"], headers=refused.said.headers)
        lacking = self.needs.get(method, set()) - set(held["scope"].split())
        if lacking:
            return self.challenge(403, error="insufficient_scope", scope=" ".join(sorted(self.needs[method])))
        return None

    def challenge(self, status: int, headers: tuple[tuple[str, str], ...] = (), **fields: str) -> Reply:
        if self.named:
            fields["resource_metadata"] = self.named
        if self.scope and status == 401:
            fields.setdefault("scope", self.scope)
        listed = ", ".join(f'{name}="{value}"' for name, value in fields.items())
        scheme = "Bearer" if self.dpop is None else "DPoP"
        return Reply(status, {"error": "unauthorized"}, (("WWW-Authenticate", f"{scheme} {listed}".strip()), *headers))

    def answer(self, message: dict[str, Any]) -> Reply:
        match message["method"]:
            case "initialize":
                about = {"name": "oauth_servers", "version": "1"}
                result: Any = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": about,
                }
            case "tools/list":
                result = {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "hello"}]}
            case "ping":
                result = {}
            case _:
                return Reply(202)
        return Reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


@contextmanager
def running(*places: LoopbackServer) -> Iterator[None]:
    """The places, each at a port of its own."""
    servers = [_open(place) for place in places]
    threads = [Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
        for thread in threads:
            thread.join(10)
        for server in servers:
            server.server_close()


def _open(place: LoopbackServer) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            received = Received(self.command, parts.path, query, headers, self.rfile.read(size))
            place.asked.append(received)
            self.say(place.handle(received))

        do_POST = do_DELETE = do_GET

        def say(self, said: Reply) -> None:
            body = said.document if isinstance(said.document, bytes) else json.dumps(said.document).encode()
            body = b"" if said.document is None else body
            self.send_response(said.status)
            for name, value in (
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                *said.headers,
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    place.url = f"http://127.0.0.1:{server.server_address[1]}"
    return server


async def follow(url: str) -> str:
    """A browser, as far as a login needs it."""
    http = HttpClient()
    try:
        answer = await http.fetch("GET", url)
        location = answer.header("location")
        assert answer.status == 302 and location, (answer.status, answer.body)
        return location
    finally:
        await http.close()
