"""Attempts to get an identity in another realm of the same server: by its token endpoint, by exchanges, and by
spellings of paths."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from urllib.parse import urlencode

import pytest

from arco_catalog.authentication.claims import read_unverified
from arco_catalog.authentication.token_endpoint import ACCESS_TOKEN, TOKEN_EXCHANGE
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject
from tests.access.test_impostors import FORM, credentials_in, sign_none
from tests.authentication.realm import own_tokens
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import MANAGEMENT, RealmApp
from tools.support.asgi_client import Answer, Client

JWT = "urn:ietf:params:oauth:token-type:jwt"
REALM_HEADERS: Sequence[str | None] = (
    *(None, "a", "b", "c", "A", "B", "", "a,b", "b, a", "a b", "a;b"),
    *("../b", "b/", "a/../b", "%62", "b\t", "_realm", "*", "default", "b" * 8_000),
)
NAMED_OTHERWISE: Sequence[Mapping[str, str]] = (
    {},
    {"realm": "b"},
    {"polaris-realm": "b"},
    {"Polaris-Realm": "b"},
    {"audience": "b", "resource": "b"},
)


class TwoOffices:
    """The realms `a` and `b` with real tokens, both with the catalog `lake`, and only `b` with the namespace
    `secretdb` in it."""

    def __init__(self, base_path: str = "") -> None:
        clock = FakeRuntime()
        options = HttpOptions(base_path=base_path.encode(), health=True)
        self.app = RealmApp(names=("a", "b"), clock=clock, tokens=own_tokens(clock), options=options)
        self.base_path = base_path

    async def open(self) -> "TwoOffices":
        await self.app.start()
        self.roots = {name: await self.root_of(name) for name in ("a", "b")}
        for name, root in self.roots.items():
            await self.app.catalog("lake", self.below(root), self.app.base("lake", name))
        return self

    def below(self, client: Client) -> Client:
        """A client of paths as they are without a base path."""
        return client

    def credentials(self, realm: str) -> tuple[str, str]:
        return f"root-{realm}", self.app.clear[realm]

    async def ask(
        self, form: Mapping[str, str], realm: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The token endpoint's answer."""
        named = {} if realm is None else {"polaris-realm": realm}
        sent = {**FORM, **named, **(headers or {})}
        return await Client(self.app.app).send("POST", "/v1/oauth/tokens", urlencode(form).encode(), sent)

    async def token(self, realm: str) -> str:
        answer = await self.ask(login(self.credentials(realm)), realm)
        assert answer.status == 200, answer.body
        return str(answer.json["access_token"])

    async def root_of(self, realm: str) -> Client:
        return Client(self.app.app, {"authorization": f"Bearer {await self.token(realm)}"})

    async def check_is_of(self, realm: str, token: str) -> None:
        """Checks that a token is of this realm alone."""
        unverified = read_unverified(token)
        assert unverified is not None
        assert unverified.claims["realm"] == realm
        bearer = Client(self.app.app, {"authorization": f"Bearer {token}"})
        listed = await bearer.get(f"{MANAGEMENT}/principals")
        assert (listed.status, f"root-{realm}".encode() in listed.body) == (200, True)
        other = "b" if realm == "a" else "a"
        assert (await bearer.get(f"{MANAGEMENT}/principals", polaris_realm=other)).status == 401


def login(credentials: tuple[str, str] | None) -> dict[str, str]:
    form = {"grant_type": "client_credentials"}
    return form if credentials is None else {**form, "client_id": credentials[0], "client_secret": credentials[1]}


def basic(credentials: tuple[str, str] | None) -> dict[str, str]:
    if credentials is None:
        return {}
    return {"authorization": f"Basic {base64.b64encode(':'.join(credentials).encode()).decode()}"}


async def test_credentials_get_a_token_of_their_own_realm_alone() -> None:
    offices, tries = await TwoOffices().open(), 0
    places = [(header, body) for header, body in product((None, "a", "b"), repeat=2) if header or body]
    for (header, body), named, more in product(places, REALM_HEADERS, NAMED_OTHERWISE):
        form = {**login(None if body is None else offices.credentials(body)), **more}
        sent = basic(None if header is None else offices.credentials(header))
        answer = await offices.ask(form, named, sent)
        tries += 1
        whose, requested = header or body, named or "a"  # an empty header names none
        if body not in (None, whose):
            assert answer.status == 400, (header, body, named, more, answer.body)
        elif whose == requested:
            assert answer.status == 200, (header, body, named, more, answer.body)
            await offices.check_is_of(requested, str(answer.json["access_token"]))
        else:
            assert answer.status == 401, (header, body, named, more, answer.body)
    assert tries > 700


async def test_a_stranger_is_answered_alike_by_realms_that_exist_and_by_others() -> None:
    offices = await TwoOffices().open()
    forms = [
        login(("root-a", "0" * 64)),
        login(("root-b", offices.app.clear["a"])),
        login(("stranger", "0" * 64)),
        login(None),
        {},
    ]
    for form in forms:
        answers = {
            (answer.status, answer.body)
            for named in REALM_HEADERS
            if (answer := await offices.ask(form, named)).status != 200
        }
        assert len(answers) == 1, answers


async def test_a_token_is_exchanged_in_its_own_realm_alone() -> None:
    offices, tries = await TwoOffices().open(), 0
    acting: JsonObject = {"principal": {"name": "trino", "properties": {"arco.act-for-others": "true"}}}
    await offices.app.ok("POST", "principals", {"principal": {"name": "bob"}}, offices.roots["b"])
    made = await offices.app.ok("POST", "principals", acting, offices.roots["a"])
    answer = await offices.ask(login(credentials_in(made)), "a")
    trino = str(answer.json["access_token"])
    tokens = {"a": await offices.token("a"), "b": await offices.token("b")}
    bearers = {"": "", "a": tokens["a"], "b": tokens["b"], "trino": trino}
    unsigned = {
        f"none of {name}": sign_none({"sub": name, "iss": "arco", "realm": realm, "iat": 1})
        for name, realm in product(("root", "bob", "root-b"), ("a", "b"))
    }
    subjects = {**tokens, **unsigned}
    for (whose, subject), bearer, named, kind in product(subjects.items(), bearers, REALM_HEADERS, (ACCESS_TOKEN, JWT)):
        form = {"grant_type": TOKEN_EXCHANGE, "subject_token": subject, "subject_token_type": kind}
        sent = {"authorization": f"Bearer {bearers[bearer]}"} if bearer else {}
        answer = await offices.ask(form, named, sent)
        tries += 1
        if whose in tokens and (named or "a") == whose:
            assert answer.status == 200, (whose, bearer, named, answer.body)
            await offices.check_is_of(whose, str(answer.json["access_token"]))
        else:
            assert answer.status in (400, 401, 403), (whose, bearer, named, answer.status, answer.body)
            assert b"access_token" not in answer.body
    assert tries >= 800


async def test_an_id_that_is_chosen_in_one_realm_is_none_in_the_other() -> None:
    offices = await TwoOffices().open()
    await offices.app.ok("POST", "principals", {"principal": {"name": "eve"}}, offices.roots["a"])
    chosen: JsonObject = {"clientId": "root-b", "clientSecret": "a-secret-that-eve-has-chosen"}
    reset = await offices.app.manage("POST", "principals/eve/reset", chosen, offices.roots["a"])
    assert reset.status == 200, reset.body
    eves = credentials_in(reset.json)

    assert (await offices.ask(login(eves), "b")).status == 401
    answer = await offices.ask(login(eves), "a")
    eve = Client(offices.app.app, {"authorization": f"Bearer {answer.json['access_token']}"})
    assert (await eve.get(f"{MANAGEMENT}/principals")).status == 403
    await offices.check_is_of("b", await offices.token("b"))


# Paths.

BASES = ("", "/iceberg", "/api/catalog", "/api", "/v1", "/a")
PATHS = ("/v1/config?warehouse=lake", "/v1/lake/namespaces", f"{MANAGEMENT}/principals", f"{MANAGEMENT}/catalogs")
POLARIS = "/api/catalog"


def spelled(base: str) -> Iterator[str]:
    """What could stand before a path, and look like the base path."""
    for piece in {base, "/iceberg", POLARIS, "/a", "/b", "/v1", "/health", "/v1/oauth/tokens", "/api", "/v1/lake"}:
        if not piece:
            continue
        encoded = f"/%{ord(piece[1]):02x}{piece[2:]}"
        yield from (piece, piece * 2, piece.upper(), piece.title(), encoded, f"/{piece}", f"{piece}/", f"{piece}/.")
        yield from (f"{piece}/..", f"{piece}/../b", f"/..{piece}", f"{piece};x=1", f"{piece}%2f", f"{piece}%2F..")
        yield from (f"{piece}%00", f"{piece}%20", f"{piece}+", f"{piece}\\..", piece.replace("/", "%2f"), f"{piece}%")
        yield from (f"{piece}{POLARIS}", f"{POLARIS}{piece}", f"{base}{piece}", f"{piece}{base}", f"{piece}//")


def served(base: str, path: str) -> set[str]:
    """All spellings of a path that are meant: below the base path or not, and catalogs as Polaris has them."""
    below = {base, ""}
    return {f"{place}{path}" for place in below} | {
        f"{place}{POLARIS}{path}" for place in below if path.startswith("/v1/")
    }


@pytest.mark.parametrize("base", BASES)
async def test_no_spelling_of_a_path_leads_past_the_login_or_to_another_realm(base: str) -> None:
    offices = await TwoOffices(base).open() if base not in ("/api", "/v1") else await beneath(base)
    root, stranger, tries = offices.roots["a"], Client(offices.app.app), 0
    for before, path in product({*spelled(base)}, PATHS):
        target = f"{before}{path}"
        tries += 1
        for method in ("GET", "POST"):
            answer = await stranger.send(method, target)
            assert answer.status in (400, 401), (method, target, answer.status, answer.body)
        answer = await root.get(target)
        if target not in served(base, path):
            assert answer.status in (400, 404), (target, answer.status, answer.body)
        assert b"root-b" not in answer.body
        refused = await Client(offices.app.app, {**root.headers, "polaris-realm": "b"}).get(target)
        assert refused.status in (400, 401), (target, refused.status)
    assert tries > 400


async def beneath(base: str) -> TwoOffices:
    """Offices below a path that the catalog's own begin with: the client that created them used the whole path."""
    offices = await TwoOffices().open()
    offices.app.options = HttpOptions(base_path=base.encode(), health=True)
    offices.app.app = offices.app.serve()
    offices.roots = {name: Client(offices.app.app, root.headers) for name, root in offices.roots.items()}
    return offices


async def test_requests_to_thousands_of_realms_leave_nothing_in_memory() -> None:
    offices = await TwoOffices().open()
    for place in range(1_500):
        answer = await offices.ask(login(("root-a", f"{place:064x}")), f"realm{place}")
        assert answer.status == 401
    assert offices.app.store is not None
    keys = [entry.key for entry in (await offices.app.store.list("realm")).entries]
    assert keys == []
    await offices.check_is_of("a", await offices.token("a"))
