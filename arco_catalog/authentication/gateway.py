"""Reads the caller that API Gateway, a function URL, or App Service has verified. It is in the event that invokes the
function, which no client can write; for App Service the event is made of a header that clients can't set.

Sources: API Gateway developer guide, "Working with AWS Lambda proxy integrations for HTTP APIs" and "Input format of a
Lambda function for proxy integration"; Lambda developer guide, "Invoking Lambda function URLs".
"""

import hashlib
import re
from collections.abc import Mapping

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.claims import check_bearer_token, role_names, text_claim
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.planning.access import Identity
from storage_backends.lazy_dataclass import dataclass

MAX_TEXT = 256
"""Characters of a principal's name in receipts and logs."""
CONTROL = r"[\x00-\x1f\x7f-\x9f]"
AWS = "aws"
"""Prefix of the subject of principals that sign their requests: `aws ARN`."""

_ROLE = r"(arn:[a-z-]+:sts::[0-9]*:assumed-role/[^/]+)/(.*)"


@dataclass(frozen=True, slots=True)
class GatewayAuthenticator:
    """Authenticates by the event of the gateway in front of a function, but not requests without an event, nor bearer
    tokens that the gateway has not verified: other authenticators may. `apis` are the realms of trusted APIs and
    function URLs by their ids. `principal_claim` is the claim of tokens that names the principal, and `roles_claim` the
    one that names principal roles, None to activate all."""

    apis: Mapping[str, str]
    principal_claim: str = "sub"
    roles_claim: str | None = None

    async def authenticate(self, credentials: RequestCredentials) -> AuthenticationResult | None:
        """Returns the caller that the event of the gateway names: the signer of the request, or else the owner of a
        token. Returns None for a request without an event, and for a bearer token that the gateway does not confirm.
        Raises `NotAuthorized` for an API that is not in `apis`, without any caller or token, and for an invalid ARN or
        claim."""
        if credentials.event is None:
            return None
        context = inner(credentials.event, "requestContext")
        api = inner(context, "apiId")
        realm = self.apis.get(api) if isinstance(api, str) else None
        if realm is None:
            raise NotAuthorized(
                "The request came through an API that this server does not trust: its id (for Azure's App Service: "
                "easyauth) is not in ARCO_GATEWAY_APIS"
            )
        signed, claims = signer_in(context), claims_in(context)
        if signed is not None:
            return _signer(realm, signed)
        if claims is not None:
            return self._owner(realm, claims)
        if credentials.bearer is not None:
            return None  # the gateway did not verify it, and another authenticator may
        raise NotAuthorized(
            "The gateway passed on no verified caller (by IAM, a JWT or Cognito authorizer, or the authentication of "
            "App Service), and the request has no bearer token: let the gateway authenticate callers, or send a token "
            "if ARCO_AUTH has oidc or internal beside gateway"
        )

    def _owner(self, realm: str, claims: Mapping[str, object]) -> AuthenticationResult:
        """Returns the result for the principal of a token, given by the claims that the gateway has verified, with the
        roles in the claim `roles_claim`: none without the claim, and all if none is configured. Raises `NotAuthorized`
        if another claim is missing, or one is malformed, the issuer is not an HTTPS URL, or the token is no bearer
        token."""
        check_bearer_token(claims)
        texts = {name: value for name, value in claims.items() if isinstance(value, str)}
        issuer, subject = text_claim(texts, "iss"), text_claim(texts, self.principal_claim)
        if not issuer.startswith("https://") or " " in issuer:
            raise NotAuthorized("The token's issuer (claim 'iss') is not an https:// URL")
        roles = None if self.roles_claim is None else flattened(texts.get(self.roles_claim, ""))
        return AuthenticationResult(realm, Identity(f"{issuer} {subject}", roles, issued=True), printable(subject))


def _signer(realm: str, arn: str) -> AuthenticationResult:
    """Returns the result for the principal that signed a request, given by its ARN, after the gateway has verified the
    signature. All sessions of an assumed role are one principal, and the session's name is in the result. Raises
    `NotAuthorized` without a usable ARN."""
    if not arn or not arn.isprintable() or " " in arn:
        raise NotAuthorized(
            "The gateway's IAM authorizer let the signed request in, but passed on no ARN of the caller (userArn), or "
            "one with blanks or control characters"
        )
    principal, session = without_session(arn)
    identity = Identity(f"{AWS} {principal}", issued=True)
    return AuthenticationResult(realm, identity, printable(principal), None if session is None else printable(session))


def signer_in(context: object) -> str | None:
    """Returns the ARN that signed a request, from the event of an HTTP API, a function URL or a REST API. Empty if an
    HTTP API or function URL has a signer without an ARN; None for a request that is not signed."""
    iam = inner(inner(context, "authorizer"), "iam")
    arn = inner(iam, "userArn") or inner(inner(context, "identity"), "userArn")
    if isinstance(arn, str) and arn:
        return arn
    return None if iam is None else ""


def claims_in(context: object) -> Mapping[str, object] | None:
    """Returns the claims of a token that was checked by the JWT authorizer of an HTTP API, or the Cognito authorizer of
    a REST API, in the form of which `event_in` passes on those of App Service; empty if the JWT authorizer passed none
    on, and None if neither has checked a token."""
    authorizer = inner(context, "authorizer")
    verified = inner(authorizer, "jwt")
    claims = inner(authorizer if verified is None else verified, "claims")
    if isinstance(claims, dict):
        return claims
    return None if verified is None else {}


def flattened(text: str) -> frozenset[str]:
    """Returns the set of names of roles in a claim, as gateways pass on arrays: `[a b]` by HTTP APIs, `a,b` by REST
    APIs; empty for an empty text. Raises `NotAuthorized` for malformed names."""
    bracketed = text.startswith("[") and text.endswith("]")
    return role_names(re.split(r"[ ,]+", inside) if (inside := text[1:-1] if bracketed else text) else ())


def without_session(arn: str) -> tuple[str, str | None]:
    """Splits the ARN of an assumed role into that of the role, without the session, and the session's name, None if it
    is empty: a client that renews its credentials between two tries is still the same principal. Any other ARN is
    returned as it is, with None."""
    role = re.fullmatch(_ROLE, arn, re.DOTALL)
    return (arn, None) if role is None else (role[1], role[2] or None)


def inner(value: object, name: str) -> object:
    """Returns the member `name` of a JSON object, None if it is missing or `value` is not an object."""
    return value.get(name) if isinstance(value, dict) else None


def printable(text: str) -> str:
    """Returns a principal's name as receipts and logs have it: with question marks for control characters, and at most
    `MAX_TEXT` characters. A text that had to be changed ends with a digest of it, so that two names stay different."""
    shown = re.sub(CONTROL, "?", text[:MAX_TEXT])
    if shown == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{shown[: MAX_TEXT - 17]}~{digest}"
