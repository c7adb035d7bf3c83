"""Keycloak as the identity provider, set up by docs/identity-providers/keycloak.md: its tokens are accepted, and those
for others are not (`make test-oidc`)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import jwt
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog

from arco_catalog.authentication.jwks import REFRESH_MS, RETRY_MS
from arco_catalog.authentication.oidc import OidcAuthenticator
from arco_catalog.authentication.setup import load_authentication
from arco_catalog.iceberg.errors import NotAuthorized
from tests.authentication.test_real_issuer import Ahead, who
from tests.cli.process import Server, arco, finished, serving, start
from tests.support.keycloak import INSTALLED, Keycloak, keycloak, log_in
from tests.support.keycloak_realm import AUDIENCE, BUILT_IN_ROLES, OTHER_ROLES, PASSWORD, SECRET, make_realm
from tests.support.served_realms import bootstrapped, manage

pytestmark = [pytest.mark.slow, pytest.mark.optional(INSTALLED)]
LIFETIME_S, SKEW_S = 300, 60


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """Keycloak with the realms `lake` and `other`, of which only the first is trusted."""
    with keycloak(tmp_path_factory.mktemp("keycloak") / "keycloak.log") as running:
        make_realm(running, "lake")
        make_realm(running, "other")
        yield running


def settings(provider: Keycloak, **changed: str) -> dict[str, str]:
    """The variables of a server, as the page has them."""
    return {
        "ARCO_AUTH": "oidc",
        "ARCO_OIDC_ISSUERS": provider.issuer("lake"),
        "ARCO_OIDC_AUDIENCES": AUDIENCE,
        "ARCO_OIDC_ROLES_CLAIM": "realm_access.roles",
        "ARCO_OIDC_LOOPBACK_HTTP": "true",
        **changed,
    }


@asynccontextmanager
async def trusting(environment: dict[str, str], runtime: Ahead | None = None) -> AsyncIterator[OidcAuthenticator]:
    """An authenticator, as a server's variables make it."""
    made = load_authentication(environment, "r1", runtime or Ahead())
    assert made is not None
    assert made.oidc is not None
    yield made.oidc
    await made.close()


async def by_client(provider: Keycloak, client: str, realm: str = "lake") -> str:
    return str((await asyncio.to_thread(provider.tokens, realm, client, SECRET))["access_token"])


async def by_person(provider: Keycloak, name: str, scope: str = "openid") -> dict[str, Any]:
    """The tokens of a user."""
    form = {"grant_type": "password", "username": name, "password": PASSWORD, "scope": scope}
    return await asyncio.to_thread(lambda: provider.tokens("lake", "spark", SECRET, **form))


class TestTokens:
    """What is accepted, and whose it is."""

    async def test_a_client_is_its_service_account_with_the_roles_of_the_realm(self, provider: Keycloak) -> None:
        async with trusting(settings(provider)) as authenticator:
            found = await who(authenticator, await by_client(provider, "spark"))

        account = provider.user("lake", "service-account-spark")
        assert found is not None
        assert found.identity.principal == f"{provider.issuer('lake')} {account}"
        assert found.identity.activated == frozenset({"writer", *BUILT_IN_ROLES})

    async def test_a_user_has_the_roles_of_its_groups_and_names_that_no_role_has_do_no_harm(
        self, provider: Keycloak
    ) -> None:
        token = (await by_person(provider, "ada"))["access_token"]
        async with trusting(settings(provider)) as authenticator:
            by_roles = await who(authenticator, token)
        async with trusting(settings(provider, ARCO_OIDC_ROLES_CLAIM="groups")) as authenticator:
            by_groups = await who(authenticator, token)
            without = await who(authenticator, (await by_person(provider, "bob"))["access_token"])

        assert by_roles is not None
        assert by_roles.identity.activated == frozenset({"reader", *OTHER_ROLES, *BUILT_IN_ROLES})
        assert by_groups is not None
        assert by_groups.identity.activated == frozenset({"analysts"})
        assert without is not None
        assert without.identity.activated == frozenset()

    async def test_users_of_one_name_in_two_realms_are_two_principals(self, provider: Keycloak) -> None:
        both = settings(provider, ARCO_OIDC_ISSUERS=",".join(provider.issuer(realm) for realm in ("lake", "other")))
        async with trusting(both) as authenticator:
            found = [await who(authenticator, await by_client(provider, "spark", realm)) for realm in ("lake", "other")]

        principals = {each.identity.principal for each in found if each is not None}
        assert len(principals) == 2
        assert {principal.partition(" ")[0] for principal in principals} == set(both["ARCO_OIDC_ISSUERS"].split(","))

    @pytest.mark.parametrize(
        ("client", "reason"),
        [
            ("elsewhere", "not for this server"),
            ("audienceless", "lacks a required claim"),
            ("lightweight", "lacks a required claim"),
            ("nameless", "'preferred_username' is missing"),
        ],
    )
    async def test_a_token_that_lacks_the_audience_or_the_name_is_refused(
        self, provider: Keycloak, client: str, reason: str
    ) -> None:
        named = {"ARCO_OIDC_PRINCIPAL_CLAIM": "preferred_username"} if client == "nameless" else {}
        async with trusting(settings(provider, **named)) as authenticator:
            with pytest.raises(NotAuthorized, match=reason):
                await who(authenticator, await by_client(provider, client))

    async def test_a_token_of_another_realm_is_not_of_the_issuer(self, provider: Keycloak) -> None:
        token = await by_client(provider, "spark", "other")
        header, _, signature = token.split(".")
        claims = json.dumps({**_claims(token), "iss": provider.issuer("lake")}).encode()
        mixed = f"{header}.{jwt.utils.base64url_encode(claims).decode()}.{signature}"
        async with trusting(settings(provider)) as authenticator:
            assert await who(authenticator, token) is None
            with pytest.raises(NotAuthorized, match="a key that its issuer does not have"):
                await who(authenticator, mixed)

    async def test_id_tokens_and_refresh_tokens_are_refused(self, provider: Keycloak) -> None:
        tokens = await by_person(provider, "ada")
        async with trusting(settings(provider)) as authenticator:
            with pytest.raises(NotAuthorized, match="not for this server"):
                await who(authenticator, tokens["id_token"])
            with pytest.raises(NotAuthorized, match="an algorithm that is not allowed"):
                await who(authenticator, tokens["refresh_token"])

    async def test_a_token_that_is_not_signed_is_exchanged_for_none(self, provider: Keycloak) -> None:
        """As Trino sends one for each of its users, docs/engines/trino.md has what it gets here."""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": jwt.encode({"sub": "ada", "iss": "476"}, "", "none"),
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        }
        with pytest.raises(HTTPError) as refused:
            await asyncio.to_thread(lambda: provider.tokens("lake", "spark", SECRET, **form))
        with refused.value as answer:
            assert 400 <= answer.code < 500


def _claims(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


class TestTimes:
    """Keys that are replaced, and clocks that differ."""

    async def test_a_token_counts_until_a_minute_after_its_end_and_from_a_minute_before_it_was_issued(
        self, provider: Keycloak
    ) -> None:
        token = await by_client(provider, "spark")
        issued = _claims(token)["iat"]
        for off_s, expected in (
            (-SKEW_S - 1, "not valid yet"),
            (-SKEW_S, None),
            (LIFETIME_S + SKEW_S - 1, None),
            (LIFETIME_S + SKEW_S, "expired"),
        ):
            runtime = Standing((issued + off_s) * 1_000)
            async with trusting(settings(provider), runtime) as authenticator:
                if expected is None:
                    assert await who(authenticator, token) is not None
                else:
                    with pytest.raises(NotAuthorized, match=expected):
                        await who(authenticator, token)

    async def test_a_key_that_is_replaced_counts_while_it_is_published_and_no_longer(self, provider: Keycloak) -> None:
        runtime = Ahead()
        async with trusting(settings(provider), runtime) as authenticator:
            old = await by_client(provider, "long-lived")
            assert await who(authenticator, old) is not None
            (first,) = provider.signing_keys("lake")
            provider.add_key("lake", "second", 200)
            runtime.ahead_ms += RETRY_MS
            new = await by_client(provider, "long-lived")
            assert jwt.get_unverified_header(new)["kid"] != jwt.get_unverified_header(old)["kid"]
            for token in (old, new):
                assert await who(authenticator, token) is not None

            provider.remove_key("lake", first)
            runtime.ahead_ms += REFRESH_MS
            assert await who(authenticator, new) is not None
            await _forgotten(authenticator, old)
            with pytest.raises(NotAuthorized, match="a key that its issuer does not have"):
                await who(authenticator, old)
            assert await who(authenticator, await by_client(provider, "long-lived")) is not None


class Standing(Ahead):
    """A clock that stands at a time."""

    def __init__(self, ms: int) -> None:
        super().__init__()
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms


async def _forgotten(authenticator: OidcAuthenticator, token: str) -> None:
    """Returns when a token is refused: the keys are read in the background."""
    for _ in range(3_000):
        with suppress(NotAuthorized):
            await who(authenticator, token)
            await asyncio.sleep(0.01)
            continue
        return
    raise AssertionError("the token is still accepted")


@asynccontextmanager
async def catalog(folder: Path, provider: Keycloak) -> AsyncIterator[Server]:
    """A server that accepts tokens of the realm `lake`, with its users and clients as principals. Who has the role
    `reader` may list namespaces, and who has `writer` may do everything in the catalog."""
    store = f"file:{folder}/lake"
    await bootstrapped(store)
    principals = {"ada": "ada", "bob": "bob", "spark": "service-account-spark"}
    for principal, user in principals.items():
        subject = f"arco.subject={provider.issuer('lake')} {provider.user('lake', user)}"
        await manage(store, "principals", "create", principal, "--property", subject)
    for role, privilege in {"reader": "NAMESPACE_LIST", "writer": "CATALOG_MANAGE_CONTENT"}.items():
        await manage(store, "roles", "create", role)
        await manage(store, "roles", "create", f"{role}s", "--catalog-role")
        await manage(store, "roles", "assign", f"{role}s", "--catalog-role", "--to", role)
        await manage(store, "grants", "add", f"{role}s", privilege)
        for principal in principals:
            await manage(store, "roles", "assign", role, "--to", principal)
    async with serving(store, "--quiet", **settings(provider)) as server:
        yield server


class TestLogins:
    """Commands and PyIceberg log in at Keycloak, and work at a server that trusts it."""

    async def test_a_client_logs_in_by_its_secret_and_each_token_is_a_new_one(
        self, provider: Keycloak, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text(SECRET)
        home = {"XDG_CONFIG_HOME": f"{tmp_path}/config"}
        async with catalog(tmp_path, provider) as server:
            login = ("login", server.uri, "--issuer", provider.issuer("lake"), "--client-id", "spark")
            made = await arco(*login, "--secret-file", f"{tmp_path}/secret", **home)
            check = ("grants", "check", "-", "TABLE_CREATE", "--url", server.uri, "--json")
            first = await arco(*check, **home)
            saved = await _age(tmp_path)
            second = await arco(*check, **home)

        assert made.code == 0, made
        for checked in (first, second):
            assert checked.code == 0, checked
            assert json.loads(checked.out)["principal"] == "spark"
        assert (await _age(tmp_path)) != saved

    @pytest.mark.parametrize("way", [(), ("--browser",)], ids=["by a device code", "by a browser"])
    async def test_a_person_logs_in_and_one_that_is_disabled_gets_no_further_token(
        self, way: tuple[str, ...], provider: Keycloak, tmp_path: Path
    ) -> None:
        home = {"XDG_CONFIG_HOME": f"{tmp_path}/config"}
        async with catalog(tmp_path, provider) as server:
            login = ("login", server.uri, "--issuer", provider.issuer("lake"), "--client-id", "arco", *way)
            process = await start(*login, **home)
            assert process.stderr is not None
            shown = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
            url = re.match(r"Open (http://\S+)", shown)
            assert url is not None, shown
            page = await asyncio.to_thread(log_in, url[1], "ada", PASSWORD)
            ended = await finished(process)
            assert ended.code == 0, (ended, page)

            check = ("grants", "check", "-", "NAMESPACE_LIST", "--url", server.uri, "--json")
            allowed = await arco(*check, **home)
            denied = await arco(*check[:3], "TABLE_CREATE", *check[4:], **home)
            await _age(tmp_path)
            renewed = await arco(*check, **home)
            with _disabled(provider, "ada"):
                while_it_lives = await arco(*check, **home)
                await _age(tmp_path)
                refused = await arco(*check, **home)

        assert [allowed.code, denied.code, renewed.code, while_it_lives.code, refused.code] == [0, 1, 0, 0, 1]
        assert json.loads(allowed.out)["principal"] == "ada"
        assert "and was not renewed" in refused.err
        assert "log in again" in refused.err

    async def test_pyiceberg_signs_in_at_keycloak(self, provider: Keycloak, tmp_path: Path) -> None:
        async with catalog(tmp_path, provider) as server:

            def work() -> list[int]:
                signed_in = load_catalog(
                    "arco",
                    type="rest",
                    uri=server.uri,
                    warehouse="arco",
                    credential=f"spark:{SECRET}",
                    scope="openid",
                    **{"oauth2-server-uri": f"{provider.issuer('lake')}/protocol/openid-connect/token"},
                )
                signed_in.create_namespace("db")
                signed_in.create_table("db.t", pa.schema([("x", pa.int64())])).append(pa.table({"x": [1, 2]}))
                rows: list[int] = signed_in.load_table("db.t").scan().to_arrow()["x"].to_pylist()
                return rows

            assert await asyncio.to_thread(work) == [1, 2]

    async def test_what_is_not_accepted_is_named_by_the_doctor(self, provider: Keycloak, tmp_path: Path) -> None:
        store = f"file:{tmp_path}/lake"
        await bootstrapped(store)
        found = {}
        for client in ("audienceless", "spark"):
            (tmp_path / client).write_text(await by_client(provider, client))
            doctor = ("doctor", "--auth", f"{tmp_path}/{client}", "--store", store, "--json")
            ended = await arco(*doctor, **settings(provider))
            assert ended.code == 1, ended
            found[client] = json.loads(ended.out)["checks"][-1]

        assert (found["audienceless"]["check"], found["spark"]["check"]) == ("verification", "principal")
        assert "lacks a required claim" in found["audienceless"]["found"]
        assert provider.user("lake", "service-account-spark") in found["spark"]["advice"]


@contextmanager
def _disabled(provider: Keycloak, user: str) -> Iterator[None]:
    path = f"/lake/users/{provider.user('lake', user)}"
    provider.manage("PUT", path, {"enabled": False})
    try:
        yield
    finally:
        provider.manage("PUT", path, {"enabled": True})


async def _age(folder: Path) -> str:
    """Lets the saved token expire, and returns it."""
    (file,) = (folder / "config/arco/logins").glob("*.json")
    saved = json.loads(file.read_text())
    file.write_text(json.dumps({**saved, "expires_ms": 0}))
    return str(saved["access_token"])
