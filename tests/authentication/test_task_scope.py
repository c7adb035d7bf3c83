"""The scope `execute_tasks`: for the delegation service, and for nothing else."""

import pytest

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.oidc import scopes_in
from arco_catalog.authentication.tokens import EXECUTE_TASKS
from arco_catalog.http.delegation_service.authentication import TaskAuthenticator
from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.planning.access import Identity
from tests.authentication.realm import Realm
from tests.authentication.test_token_endpoint import ask, credentials, exchange, refusal_in, token_in, who
from tests.support.fake_runtime import FakeRuntime


@pytest.fixture
async def realm() -> Realm:
    """Of its principals only ada has the role."""
    made = Realm(FakeRuntime(), roles={"ada": {EXECUTE_TASKS}})
    for name in ("ada", "bob"):
        await made.add(name)
    return made


async def test_who_has_the_role_gets_the_scope_and_no_role_with_it(realm: Realm) -> None:
    answer = await ask(realm, credentials(realm, "ada", scope=EXECUTE_TASKS))

    found = await who(realm, answer)
    assert answer.body["scope"] == EXECUTE_TASKS
    assert (found.scopes, found.identity.activated) == (frozenset({EXECUTE_TASKS}), frozenset())


async def test_it_can_be_asked_for_beside_roles(realm: Realm) -> None:
    answer = await ask(realm, credentials(realm, "ada", scope=f"PRINCIPAL_ROLE:reader {EXECUTE_TASKS}"))

    found = await who(realm, answer)
    assert (found.scopes, found.identity.activated) == (frozenset({EXECUTE_TASKS}), frozenset({"reader"}))


async def test_who_has_not_the_role_does_not_get_it(realm: Realm) -> None:
    assert refusal_in(await ask(realm, credentials(realm, "bob", scope=EXECUTE_TASKS))) == "invalid_scope"


async def test_all_roles_are_not_the_scope(realm: Realm) -> None:
    assert (await who(realm, await ask(realm, credentials(realm, "ada")))).scopes == frozenset()


@pytest.mark.parametrize("scope", ["", "catalog", EXECUTE_TASKS])
async def test_an_exchange_keeps_it_and_adds_no_role(realm: Realm, scope: str) -> None:
    subject = token_in(await ask(realm, credentials(realm, "ada", scope=EXECUTE_TASKS)))

    found = await who(realm, await ask(realm, exchange(subject, scope=scope)))

    assert (found.scopes, found.identity.activated) == (frozenset({EXECUTE_TASKS}), frozenset())


async def test_an_exchange_neither_adds_it_nor_roles(realm: Realm) -> None:
    without = token_in(await ask(realm, credentials(realm, "ada")))
    alone = token_in(await ask(realm, credentials(realm, "ada", scope=EXECUTE_TASKS)))

    assert refusal_in(await ask(realm, exchange(without, scope=EXECUTE_TASKS))) == "invalid_scope"
    assert refusal_in(await ask(realm, exchange(alone, scope="PRINCIPAL_ROLE:ALL"))) == "invalid_scope"


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "openid execute_tasks"}, {"openid", "execute_tasks"}),
        ({"scp": ["execute_tasks"]}, {"execute_tasks"}),
        ({"scp": "a execute_tasks"}, {"a", "execute_tasks"}),
        ({"scope": ["x", 1]}, {"x"}),
        ({"roles": ["execute_tasks"]}, set()),
        ({"scope": {"execute_tasks": True}}, set()),
    ],
)
def test_issuers_tell_scopes_in_two_ways(claims: dict[str, JsonValue], scopes: set[str]) -> None:
    assert scopes_in(claims) == scopes


async def test_of_whom_an_issuer_vouches_for_it_says_the_scope_too() -> None:
    class Issued:
        def __init__(self, *scopes: str) -> None:
            self.scopes = frozenset(scopes)

        async def authenticate(self, presented: RequestCredentials) -> AuthenticationResult | None:
            return AuthenticationResult("r", Identity("https://issuer ada", issued=True), "ada", scopes=self.scopes)

    async def admitted(*scopes: str) -> AuthenticationResult | None:
        return await TaskAuthenticator(Authentication((Issued(*scopes),)), {}).authenticate(RequestCredentials({}))

    found = await admitted("openid", EXECUTE_TASKS)
    assert found is not None
    assert found.name == "ada"
    with pytest.raises(Forbidden, match="does not have the scope"):
        await admitted("openid", "execute_task")
