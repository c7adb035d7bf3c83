"""Variables choose the authenticators; a missing or wrong one is named in the error."""

import subprocess
import sys
from pathlib import Path

import pytest

from arco_catalog.authentication.authenticator import RequestCredentials
from arco_catalog.authentication.gateway import GatewayAuthenticator
from arco_catalog.authentication.oidc import OidcAuthenticator
from arco_catalog.authentication.setup import load_authentication
from arco_catalog.authentication.tokens import InternalAuthenticator, TokenClaims
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.planning.access import Identity
from tests.authentication.realm import KEY
from tests.support.fake_runtime import FakeRuntime

OIDC = {"ARCO_OIDC_ISSUERS": "https://id.example.org", "ARCO_OIDC_AUDIENCES": "arco"}
GATEWAY = {"ARCO_GATEWAY_APIS": "abc123,r2=def456"}


def kinds(**environment: str) -> list[str]:
    chosen = load_authentication(environment, "r1", FakeRuntime())
    assert chosen is not None
    return [type(each).__name__ for each in chosen.authentication.authenticators]


def test_without_variables_there_is_no_authentication() -> None:
    assert load_authentication({}, "r1", FakeRuntime()) is None
    assert load_authentication({"ARCO_AUTH": "", **OIDC, **GATEWAY}, "r1", FakeRuntime()) is None


async def test_none_lets_anybody_in_and_no_token_means_anything() -> None:
    chosen = load_authentication({"ARCO_AUTH": "none"}, "r1", FakeRuntime())
    assert chosen is not None
    assert chosen.open
    with pytest.raises(NotAuthorized):
        await chosen.authentication.authenticate(RequestCredentials({"authorization": "Bearer x"}))


def test_several_are_chosen_at_once_in_an_order_that_does_not_depend_on_the_operators() -> None:
    every = [GatewayAuthenticator.__name__, InternalAuthenticator.__name__, OidcAuthenticator.__name__]
    for order in ("internal,oidc,gateway", "gateway, oidc ,internal"):
        assert kinds(ARCO_AUTH=order, ARCO_TOKEN_KEY=KEY, **OIDC, **GATEWAY) == every
    assert kinds(ARCO_AUTH="oidc", **OIDC) == every[2:]


async def test_internal_signs_and_takes_tokens(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n")
    for where in ({"ARCO_TOKEN_KEY": KEY}, {"ARCO_TOKEN_KEY_FILE": str(file)}):
        chosen = load_authentication({"ARCO_AUTH": "internal", **where}, "r1", FakeRuntime())
        assert chosen is not None
        assert not chosen.open
        assert chosen.tokens is not None
        token = await chosen.tokens.issue(TokenClaims("r9", "01P", "ada", "c", None, "f"))
        found = await chosen.authentication.authenticate(RequestCredentials({"authorization": f"Bearer {token}"}))
        assert (found.realm, found.identity) == ("r9", Identity("01P", secret="f"))
        await chosen.close()


async def test_gateways_belong_to_realms() -> None:
    chosen = load_authentication({"ARCO_AUTH": "gateway", **GATEWAY}, "r1", FakeRuntime())
    assert chosen is not None
    for api, realm in (("abc123", "r1"), ("def456", "r2")):
        arn = "arn:aws:iam::123456789012:user/ada"
        event = {"requestContext": {"apiId": api, "authorizer": {"iam": {"userArn": arn}}}}
        assert (await chosen.authentication.authenticate(RequestCredentials({}, event))).realm == realm


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"ARCO_AUTH": "basic"}, "ARCO_AUTH: expected none, internal, oidc, gateway, got 'basic'"),
        ({"ARCO_AUTH": "Internal"}, "ARCO_AUTH: expected"),
        ({"ARCO_AUTH": "none,internal", "ARCO_TOKEN_KEY": KEY}, "combined with others"),
        ({"ARCO_AUTH": "internal"}, "set exactly one of ARCO_TOKEN_KEY, ARCO_TOKEN_KEY_FILE and ARCO_TOKEN_KEY_SECRET"),
        ({"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY, "ARCO_TOKEN_KEY_FILE": "/x"}, "set exactly one of"),
        (
            {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": "short-and-weak"},
            "ARCO_TOKEN_KEY: key 1 for tokens has 14 bytes",
        ),
        ({"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY_SECRET": "s3://b/k"}, "ARCO_TOKEN_KEY_SECRET is not a reference"),
        ({"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY_SECRET": KEY}, "ARCO_TOKEN_KEY_SECRET is not a reference"),
        ({"ARCO_AUTH": "oidc"}, "ARCO_OIDC_AUDIENCES is not set"),
        ({"ARCO_AUTH": "oidc", "ARCO_OIDC_AUDIENCES": "arco"}, "ARCO_OIDC_ISSUERS is not set"),
        (
            {"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_ALGORITHMS": "RS256,HS256"},
            "ARCO_OIDC_ALGORITHMS: expected some of",
        ),
        ({"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_ALGORITHMS": "none"}, "ARCO_OIDC_ALGORITHMS: expected some of"),
        ({"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_ISSUERS": "http://id.example.org"}, "must be an https URL"),
        ({"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_ISSUERS": "http://127.0.0.1:9"}, "must be an https URL"),
        ({"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_ISSUERS": "https://a?b=c"}, "must have no query"),
        (
            {"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_ISSUERS": "r1=https://a,r2=https://a"},
            "'https://a' is listed twice: list it once, for one realm",
        ),
        ({"ARCO_AUTH": "oidc", **OIDC, "ARCO_OIDC_LOOPBACK_HTTP": "maybe"}, "ARCO_OIDC_LOOPBACK_HTTP: expected true"),
        ({"ARCO_AUTH": "gateway"}, "ARCO_GATEWAY_APIS is not set"),
        ({"ARCO_AUTH": "gateway", "ARCO_GATEWAY_APIS": "*"}, "'\\*' is not the id of an API"),
        ({"ARCO_AUTH": "gateway", "ARCO_GATEWAY_APIS": "abc,r2=abc"}, "'abc' is listed twice"),
    ],
)
def test_the_error_names_what_is_missing_or_wrong_and_quotes_no_key(environment: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        load_authentication(environment, "r1", FakeRuntime())
    assert KEY not in str(refused.value)
    assert "short-and-weak" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "expected 1 to 8 keys"),
        (b"short-and-weak", "key 1 for tokens has 14 bytes"),
        (b"\xff" * 40, "is not UTF-8 text"),
    ],
)
def test_a_file_without_keys_is_refused_at_the_start(tmp_path: Path, content: bytes | None, why: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=f"ARCO_TOKEN_KEY_FILE: .*{why}") as refused:
        load_authentication({"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY_FILE": str(file)}, "r1", FakeRuntime())
    assert "short-and-weak" not in str(refused.value)


def test_an_issuer_on_this_machine_needs_no_tls_where_that_is_allowed() -> None:
    local = {**OIDC, "ARCO_OIDC_ISSUERS": "http://127.0.0.1:9/x", "ARCO_OIDC_LOOPBACK_HTTP": "true"}
    assert kinds(ARCO_AUTH="oidc", **local) == [OidcAuthenticator.__name__]


def test_behind_a_gateway_nothing_that_verifies_is_imported() -> None:
    """A cold start pays for what is imported."""
    code = (
        "import sys\n"
        "from arco_catalog.authentication.setup import load_authentication\n"
        "from arco_catalog.state.runtime import SystemRuntime\n"
        "chosen = load_authentication({'ARCO_AUTH': 'gateway', 'ARCO_GATEWAY_APIS': 'abc'}, 'r1', SystemRuntime())\n"
        "assert chosen\n"
        "print([name for name in ('jwt', 'cryptography', 'httptools', 'arco_catalog.authentication.tokens')"
        " if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "[]\n"
