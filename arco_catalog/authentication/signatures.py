"""Signs and verifies tokens with PyJWT. Only modules that need it import it: a cold start behind a gateway that
verifies needs none of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject


def sign(claims: Mapping[str, Any], secret: bytes, algorithm: str, headers: Mapping[str, str]) -> str:
    """Signs claims with a secret by an algorithm, and returns the token, with these headers."""
    from jwt import PyJWT

    return PyJWT().encode({**claims}, secret, algorithm, headers={**headers})


def verified_claims(
    token: str,
    key: bytes | JsonObject,
    algorithm: str,
    *,
    issuer: str,
    audiences: Sequence[str],
    require: Sequence[str],
) -> JsonObject:
    """Returns the claims of a token, if it is signed with the key and the algorithm, by the issuer, for one of the
    audiences, and has all claims of `require`. `key` is a secret in bytes, or a public key as a key set has it (JWK).
    Does not check times: the caller does. Raises `NotAuthorized` for any other token; the message quotes nothing of
    it."""
    from jwt import PyJWK, PyJWT
    from jwt.exceptions import PyJWTError

    try:
        claims: JsonObject = PyJWT().decode(
            token,
            PyJWK(key, algorithm).key if isinstance(key, dict) else key,
            algorithms=[algorithm],
            audience=audiences,
            issuer=issuer,
            options={
                "require": [*require],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "verify_sub": False,
                "verify_jti": False,
            },
        )
    except (PyJWTError, ValueError, RecursionError) as error:  # ValueError: a key that is no point of its curve
        raise NotAuthorized(
            "The token is not valid: its issuer has not signed it, it is not for this server, or it lacks a "
            "required claim"
        ) from error
    return claims
