"""`arco principals`, `roles` and `grants`: the same at the store and at a server, and nothing more is printed than is
meant to be."""

import asyncio
import json
import os
import stat
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.cli.in_process import arco
from tests.cli.process import CompletedProcess, serving
from tests.cli.test_login import answering, response
from tests.support.served_realms import LOGINS, Root, bootstrapped

FOREIGN = {
    "principals": [{"name": 5}],
    "roles": [{"lastUpdateTimestamp": 10**30}],
    "grants": [{}],
    "results": [{}],
    "access": [{"privileges": [{}]}],
}
"""An answer in none of the forms of the management API."""
SCHEMA = Schema(NestedField(1, "id", LongType()))


@dataclass
class Realm:
    """A realm with a server, and commands that manage it by `options`: at the store, or with root's token at the
    server."""

    store: str
    uri: str
    root: Root
    options: Sequence[str] = ()

    async def run(self, *arguments: str, code: int = 0) -> CompletedProcess:
        """Runs a command, which must end with this code."""
        ended = await arco(*arguments, *self.options)
        assert ended.code == code, (arguments, ended)
        return ended

    async def json(self, *arguments: str, code: int = 0) -> Any:
        """The document that a command prints."""
        return json.loads((await self.run(*arguments, "--json", code=code)).out)

    async def principal(self, name: str) -> Root:
        """Makes a principal, and returns its credentials."""
        credentials = (await self.json("principals", "create", name))["credentials"]
        return Root(None, credentials["clientId"], credentials["clientSecret"])


@pytest.fixture(params=["store", "server"])
async def realm(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Realm]:
    store = f"file:{tmp_path}/lake"
    root = await bootstrapped(store)
    async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
        made = Realm(store, server.uri, root)
        if request.param == "store":
            made.options = ("--store", store)
        else:
            token = await token_of(server.uri, root.client_id, root.secret)
            (tmp_path / "token").write_text(f"{token}\n")
            made.options = ("--url", server.uri, "--token-file", str(tmp_path / "token"))
        yield made


async def token_of(uri: str, client_id: str, secret: str) -> str:
    """A token of the server for a client id and a secret."""
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    data = urlencode({**form, "scope": "PRINCIPAL_ROLE:ALL"}).encode()
    with await asyncio.to_thread(urlopen, f"{uri}/v1/oauth/tokens", data) as answer:
        return str(json.load(answer)["access_token"])


async def test_a_grant_lets_a_principal_in_and_a_revocation_ends_it(realm: Realm) -> None:
    with closing(realm.root.catalog(realm.uri)) as admin:
        admin.create_namespace("sales")
        admin.create_table("sales.orders", SCHEMA)
    credentials = await realm.principal("spark")
    for command in (
        "roles create engines",
        "roles assign engines --to spark",
        "roles create readers --catalog-role",
        "roles assign readers --catalog-role --to engines",
        "grants add readers TABLE_LIST sales --namespace",
    ):
        await realm.run(*command.split())
    with closing(credentials.catalog(realm.uri)) as spark:
        with pytest.raises(ForbiddenError, match="lacks the privilege TABLE_READ_DATA"):
            spark.load_table("sales.orders")

        await realm.run("grants", "add", "readers", "TABLE_READ_DATA", "sales.orders")
        assert spark.load_table("sales.orders").schema() == SCHEMA

        await realm.run("grants", "revoke", "readers", "TABLE_READ_DATA", "sales.orders")
        with pytest.raises(ForbiddenError):
            spark.load_table("sales.orders")


async def test_a_check_explains_itself_and_its_exit_code_is_the_outcome(realm: Realm) -> None:
    await realm.principal("spark")
    for command in (
        "roles create engines",
        "roles assign engines --to spark",
        "roles create readers --catalog-role",
        "roles assign readers --catalog-role --to engines",
        "grants add readers NAMESPACE_LIST",
    ):
        await realm.run(*command.split())

    with closing(realm.root.catalog(realm.uri)) as admin:
        admin.create_namespace("sales")
    who = (await realm.run("grants", "who", "sales", "NAMESPACE_LIST", "--namespace")).out
    rows = await realm.json("grants", "who", "sales", "--namespace")
    allowed = (await realm.run("grants", "check", "spark", "NAMESPACE_LIST", "sales", "--namespace")).out
    denied = (await realm.run("grants", "check", "spark", "TABLE_DROP", code=1)).out
    unknown = await realm.run("grants", "check", "nemo", "TABLE_DROP", code=2)

    assert [line.split(None, 1)[-1] for line in allowed.splitlines()] == [
        "spark",
        "NAMESPACE_LIST on namespace sales",
        "yes",
        "role  engines",
        "role    readers",
        "NAMESPACE_LIST on the catalog",
    ]
    assert [" ".join(line.split()) for line in who.splitlines()][1:] == [
        "NAMESPACE_LIST spark engines readers NAMESPACE_LIST on the catalog",
        "NAMESPACE_LIST root service_admin catalog_admin CATALOG_MANAGE_CONTENT on the catalog",
    ]
    assert [row["principal"] for row in rows] == ["spark", "root"]
    assert "Principal spark lacks the privilege TABLE_DROP on the catalog" in denied
    assert "Principal does not exist: nemo" in unknown.err
    assert await realm.json("grants", "check", "spark", "TABLE_DROP", code=1) == {
        "allowed": False,
        "principal": "spark",
        "reason": "Principal spark lacks the privilege TABLE_DROP on the catalog",
    }


async def test_a_check_at_the_store_states_that_the_policy_is_not_queried(tmp_path: Path) -> None:
    at = ("--store", f"file:{tmp_path}/lake")
    await bootstrapped(at[1])
    check = ("grants", "check", "root", "TABLE_DROP", *at)

    by_grants = await arco(*check)
    beside_a_policy = await arco(*check, ARCO_OPA_URL="https://opa.example.com/v1/data/arco/allow")

    assert (by_grants.code, by_grants.err) == (0, "")
    assert (beside_a_policy.code, beside_a_policy.out) == (0, by_grants.out)
    assert "a server also queries the policy at ARCO_OPA_URL: give --url" in beside_a_policy.err


async def test_what_is_made_is_listed_and_shown_and_dropped(realm: Realm) -> None:
    made = await realm.json("principals", "create", "ada", "--property", "team=sales", "--property", "x=y")
    await realm.run("roles", "create", "people", "--property", "team=sales")
    await realm.run("roles", "assign", "people", "--to", "ada")
    await realm.run("principals", "update", "ada", "--property", "x=z", "--remove-property", "team")
    await realm.run("roles", "create", "of catalog", "--catalog-role")
    await realm.run("roles", "assign", "of catalog", "--catalog-role", "--to", "people")
    await realm.run("grants", "add", "of catalog", "VIEW_LIST")

    shown = await realm.json("principals", "show", "ada")
    role = await realm.json("roles", "show", "of catalog", "--catalog-role")

    assert (shown["clientId"], shown["properties"]) == (made["credentials"]["clientId"], {"x": "z"})
    assert (shown["principalRoles"], role["assignees"]) == (["people"], ["people"])
    assert role["grants"] == [{"type": "catalog", "privilege": "VIEW_LIST"}]
    assert [each["name"] for each in await realm.json("principals", "list")] == ["ada", "root"]
    assert [each["name"] for each in await realm.json("roles", "list")] == ["people", "service_admin"]
    assert (await realm.json("roles", "show", "people"))["assignees"] == ["ada"]
    granted = await realm.json("grants", "list", "of catalog")
    assert granted == [{"type": "catalog", "privilege": "VIEW_LIST", "catalogRole": "of catalog"}]
    assert granted[0] in await realm.json("grants", "list")
    for command in (
        ("roles", "revoke", "people", "--from", "ada"),
        ("roles", "revoke", "of catalog", "--catalog-role", "--from", "people"),
        ("roles", "drop", "of catalog", "--catalog-role"),
        ("roles", "drop", "people"),
        ("principals", "drop", "ada"),
    ):
        await realm.run(*command)
    assert [each["name"] for each in await realm.json("principals", "list")] == ["root"]


async def test_a_secret_is_printed_once_and_a_reset_ends_it(realm: Realm) -> None:
    first = await realm.json("principals", "create", "spark")
    secret = first["credentials"]["clientSecret"]
    shown = [
        (await realm.run(*command)).out
        for command in (
            ("principals", "list"),
            ("principals", "show", "spark"),
            ("principals", "show", "spark", "--json"),
        )
    ]
    assert [secret in each for each in shown] == [False] * 3

    reset = (await realm.run("principals", "reset", "spark")).out

    assert "The secret is shown this once" in reset
    assert reset.split()[-1] not in (secret, "")
    with pytest.raises(HTTPError) as refused:
        await token_of(realm.uri, first["credentials"]["clientId"], secret)
    with refused.value as answer:
        assert answer.code == 401


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("principals show nemo", 2, "Principal does not exist: nemo"),
        ("roles show none", 2, "Principal role does not exist: none"),
        ("roles assign none --to root", 2, "Principal role does not exist: none"),
        ("roles list --catalog-role --warehouse nowhere", 2, "Catalog does not exist: nowhere"),
        ("grants add catalog_admin TABLE_LIST sales.orders", 1, "Table does not exist: sales.orders"),
        ("grants add catalog_admin EVERYTHING", 1, "is no privilege that can be granted on a catalog"),
        ("grants check root EVERYTHING", 1, "request.checks[0].privilege"),
        ("grants add catalog_admin TABLE_LIST orders", 1, "expected NAMESPACE.TABLE"),
        ("principals create root", 1, "Principal already exists: root"),
        ("principals create x --property y", 1, "--property takes KEY=VALUE"),
    ],
)
async def test_a_refusal_is_one_line(tmp_path: Path, command: str, code: int, expected: str) -> None:
    await bootstrapped(f"file:{tmp_path}")

    ended = await arco(*command.split(), "--store", f"file:{tmp_path}")

    assert expected in ended.err
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)


@pytest.mark.parametrize(
    "command",
    [
        "principals",
        "principals show",
        "principals list root",
        "principals update root",
        "roles assign engines",
        "roles revoke engines --to spark",
        "roles list --from x",
        "grants add readers",
        "grants check spark",
        "grants who",
        "grants who sales.orders TABLE_LIST x",
        "grants who sales.cleanup --policy",
        "grants list readers TABLE_LIST",
        "grants add readers TABLE_LIST --namespace",
        "grants check spark TABLE_LIST --cascade",
        "grants check - TABLE_LIST",
    ],
)
async def test_wrong_usage_is_found_before_the_store_is_opened(command: str) -> None:
    ended = await arco(*command.split(), "--store", "s3://nowhere")

    assert (ended.code, ended.out) == (2, "")
    assert "error: " in ended.err


class TestServers:
    """What is particular to --url."""

    async def test_a_store_is_not_needed(self) -> None:
        ended = await arco("principals", "list", "--url", "http://127.0.0.1:1")

        assert ended.code == 1
        assert "no complete answer of 127.0.0.1:1 came" in ended.err

    async def test_a_change_whose_answer_is_lost_has_an_unknown_outcome(self) -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            ended = await arco("principals", "create", "x", "--url", f"http://127.0.0.1:{port}")

        assert "it is unknown whether the change was made" in ended.err

    @pytest.mark.parametrize("url", ["http://example.com", "http://127.0.0.1:1"])
    async def test_a_change_that_was_not_sent_has_a_known_outcome(self, url: str) -> None:
        ended = await arco("principals", "create", "x", "--url", url)

        assert ended.code == 1
        assert url.removeprefix("http://") in ended.err
        assert "unknown" not in ended.err

    @pytest.mark.parametrize("url", ["http://example.com", "ftp://example.com", "https://user@example.com", "x"])
    async def test_a_token_is_sent_to_no_other_url_than_https_or_this_machine(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("secret")

        ended = await arco("principals", "list", "--url", url, "--token-file", f"{tmp_path}/token")

        assert (ended.code, ended.err.count("secret")) == (1, 0)

    async def test_a_caller_without_rights_gets_the_reason(self, tmp_path: Path) -> None:
        store = f"file:{tmp_path}/lake"
        await bootstrapped(store)
        made = json.loads((await arco("principals", "create", "ada", "--store", store, "--json")).out)["credentials"]
        async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
            token = await token_of(server.uri, made["clientId"], made["clientSecret"])
            (tmp_path / "token").write_text(token)
            (tmp_path / "token").chmod(stat.S_IRUSR)
            ended = await arco("principals", "list", "--url", server.uri, "--token-file", f"{tmp_path}/token")

        assert (ended.code, ended.err) == (
            1,
            "arco: Principal ada lacks the privilege PRINCIPAL_LIST on the realm\n",
        )


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", json.dumps(FOREIGN)])
@pytest.mark.parametrize(
    "command",
    [
        "principals list",
        "principals show x",
        "principals update x --property a=b",
        "principals create x",
        "principals rotate x",
        "roles list",
        "roles show x --catalog-role",
        "grants list x",
        "grants check - TABLE_DROP a.b",
        "grants who a.b",
    ],
)
async def test_an_answer_that_is_none_of_the_management_api_is_an_error(command: str, body: str) -> None:
    """As a web page, or a server of something else, sends it with status 200."""
    async with answering(defaultdict(lambda: response(body))) as url:
        ended = await arco(*command.split(), "--url", url, "--token-file", os.devnull)

    assert (ended.code, ended.out) == (1, "")
    assert "the answer is none of the catalog's APIs" in ended.err


@pytest.mark.parametrize("body", ["<html>", "", "{}", '{"status": "ok"}'])
@pytest.mark.parametrize(
    "command",
    [
        "roles create x",
        "roles assign x --to y",
        "roles revoke x --from y",
        "roles drop x",
        "grants add x TABLE_DROP a.b",
        "grants revoke x TABLE_DROP a.b",
        "principals create x",
        "principals create x --json",
        "principals drop x",
    ],
)
async def test_an_answer_of_another_form_is_no_success_of_a_change(command: str, body: str) -> None:
    async with answering(defaultdict(lambda: response(body))) as url:
        ended = await arco(*command.split(), "--url", url, "--token-file", os.devnull)

    assert (ended.code, ended.out) == (1, "")
    assert "the answer is none of the catalog's APIs" in ended.err


async def test_an_update_whose_answer_is_no_principal_is_no_success() -> None:
    answers = {"/api/management/v1/principals/x": response({"entityVersion": 1, "properties": {}})}
    async with answering(answers) as url:
        ended = await arco("principals", "update", "x", "--property", "a=b", "--url", url, "--token-file", os.devnull)

    assert (ended.code, ended.out) == (1, "")
