"""What the console is to an issuer, as an operator writes it: no slip allows requests to more than the origin meant."""

import pytest

from arco_catalog.cli.program import build_parser
from arco_catalog.cli.serve_options import ServeOptions
from arco_catalog.http.console.clients import SignIn, parse_client, parse_endpoint_origin
from arco_catalog.http.console.setup import load_sign_in

ISSUER = "https://id.example.com/realms/lake"
TRUSTED = {"ARCO_AUTH": "oidc", "ARCO_OIDC_ISSUERS": f"{ISSUER},acme=https://acme.example"}


def sign_in(*arguments: str, **environment: str) -> SignIn:
    parsed = build_parser(environment).parse_args(["serve", "--store", "memory:", *arguments])
    options = ServeOptions.of(parsed)
    return load_sign_in(options.console_clients, options.console_origins, options.auth, environment)


def test_a_client_requests_openid_unless_it_has_scopes() -> None:
    plain = parse_client(f"{ISSUER} arco", plain_loopback=False)
    scoped = parse_client(f"  {ISSUER}  arco\topenid api://x/catalog offline_access", plain_loopback=False)

    assert (plain.issuer, plain.origin, plain.client_id, plain.scope) == (
        ISSUER,
        "https://id.example.com",
        "arco",
        "openid",
    )
    assert scoped.scope == "openid api://x/catalog offline_access"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ISSUER,
        f"arco {ISSUER}",
        f"{ISSUER} arco email",
        f'{ISSUER} ar"co',
        f"{ISSUER} arcö",
        f"{ISSUER}?x=1 arco",
        f"{ISSUER}#x arco",
        "http://id.example.com arco",
        "http://127.0.0.1:8080 arco",
        "javascript:alert(1) arco",
        "data:text/html,x arco",
        "//id.example.com arco",
        "https:// arco",
        "https://* arco",
        "https://*.example.com arco",
        "https://ada:x@id.example.com arco",
        "https://id.example.com;script-src arco",
        "https://id.example.com,https://evil.example arco",
        "https://'unsafe-inline' arco",
        "https://id.example.com:99999 arco",
        "https://id.example.com\\@evil.example arco",
        "https://id.example.c\u043em arco",
    ],
)
def test_no_slip_is_a_client(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must|not a valid URL"):
        parse_client(text, plain_loopback=False)


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "https:", "https://*", "https://x.example/", "https://x.example/a", "http://x.example", "'self'"),
        *("https://x.example;", "https://x.example https://y.example", "https://x.example?x", "http://127.0.0.1"),
    ],
)
def test_no_slip_is_an_origin_of_endpoints(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must|not a valid URL"):
        parse_endpoint_origin(text, plain_loopback=False)


def test_issuers_on_this_machine_may_be_without_tls_for_trials() -> None:
    assert parse_client("http://localhost:8080/a arco", plain_loopback=True).origin == "http://localhost:8080"
    assert parse_endpoint_origin("HTTP://127.0.0.1:1", plain_loopback=True) == "http://127.0.0.1:1"
    with pytest.raises(ValueError, match="must be an https URL"):
        parse_client("http://id.example.com arco", plain_loopback=True)


def test_people_sign_in_at_issuers_that_the_server_trusts() -> None:
    found = sign_in(
        *("--console-client", f"{ISSUER} arco openid", "https://acme.example console"),
        *("--console-origin", "https://tokens.example.com", "https://acme.example"),
        **TRUSTED,
    )

    assert [client.client_id for client in found.clients] == ["arco", "console"]
    assert found.origins == ["https://id.example.com", "https://acme.example", "https://tokens.example.com"]
    assert sign_in(**TRUSTED) == SignIn()


@pytest.mark.parametrize(
    ("arguments", "environment", "why"),
    [
        (["https://evil.example arco"], TRUSTED, "tokens of https://evil.example are not accepted"),
        ([f"{ISSUER}/ arco"], TRUSTED, "are not accepted: ARCO_AUTH must name oidc, and ARCO_OIDC_ISSUERS the issuer"),
        ([f"{ISSUER} arco"], {**TRUSTED, "ARCO_AUTH": "internal"}, "are not accepted"),
        ([f"{ISSUER} arco"], {}, "are not accepted"),
        ([f"{ISSUER} arco"], {"ARCO_AUTH": "oidc"}, "ARCO_OIDC_ISSUERS is not set"),
        ([f"{ISSUER} a", f"{ISSUER} b"], TRUSTED, f"several clients of the issuer {ISSUER} are listed"),
        ([ISSUER], TRUSTED, "expected an issuer, a client id and any number of scopes, separated by blanks"),
    ],
)
def test_a_client_at_which_no_sign_in_could_succeed_is_refused(
    arguments: list[str], environment: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        sign_in("--console-client", *arguments, **environment)
