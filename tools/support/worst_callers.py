"""Makes the worst that callers without rights can send, and issuers of tokens can answer: tokens, heads, forms and
keys."""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from arco_catalog.authentication.claims import MAX_TOKEN
from arco_catalog.authentication.jwks import MAX_DISCOVERY_BYTES, MAX_KEYS, MAX_KEYS_BYTES
from arco_catalog.http.requests import MAX_FORM_BYTES
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps

Make = Callable[[], bytes]

HEAD_BYTES = 200_000
"""Of the longest head that is sent: some less than a server reads."""


def tokens() -> list[str]:
    """Tokens of the greatest length: brackets, blanks, dots, and a signature that is all there is."""
    return ["W1tb" * (MAX_TOKEN // 4), "e30." * (MAX_TOKEN // 4), "." * MAX_TOKEN, f"e30.{'W1tb' * 4_000}.AAAA"]


def heads() -> Mapping[str, Mapping[str, str]]:
    """Headers of a request, by what is wrong with them."""
    return {
        "a cookie of 200 KB": {"Cookie": "a=b; " * (HEAD_BYTES // 5)},
        "a user agent of 200 KB": {"User-Agent": "a/1 (" * (HEAD_BYTES // 5)},
        "a thousand cookies of one name": {"Cookie": "; ".join(["s=1"] * 1_000)},
        "tags that never match": {"If-None-Match": ", ".join(['"x"'] * (HEAD_BYTES // 5))},
        "codings by weight": {"Accept-Encoding": ", ".join(["gzip;q=0.000"] * (HEAD_BYTES // 14))},
        "delegation of everything": {"X-Iceberg-Access-Delegation": "vended-credentials," * (HEAD_BYTES // 19)},
        "a key of 200 KB": {"Idempotency-Key": "0" * HEAD_BYTES},
        "a trace of 8 KB": {"traceparent": "00-" + "0" * 8_000, "tracestate": "a=b," * 2_000},
    }


FORMS: Mapping[str, Make] = {
    "fields without end": lambda: b"a=b&" * (MAX_FORM_BYTES // 4),
    "one field again and again": lambda: b"grant_type=client_credentials&" * (MAX_FORM_BYTES // 30),
    "escapes": lambda: b"client_secret=" + b"%41" * ((MAX_FORM_BYTES - 100) // 3),
    "broken escapes": lambda: b"client_secret=" + b"%" * (MAX_FORM_BYTES - 100),
    "a long secret": lambda: urlencode(
        {"grant_type": "client_credentials", "client_id": "x", "client_secret": "y" * 60_000}
    ).encode(),
    "a token of brackets": lambda: urlencode(
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": tokens()[0],
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }
    ).encode(),
    "scopes": lambda: urlencode(
        {
            "grant_type": "client_credentials",
            "client_id": "x",
            "client_secret": "y",
            "scope": "PRINCIPAL_ROLE:a " * 3_000,
        }
    ).encode(),
    "more than a form may have": lambda: b"a" * (2 * MAX_FORM_BYTES),
    "no text": lambda: b"\xff\x00" * 1_000,
}
"""Bodies for the endpoint of tokens, which anyone may send."""


def _keys(entries: list[JsonValue], **further: JsonValue) -> bytes:
    return dumps({"keys": entries, **further})


def _rsa(number: int, length: int) -> JsonObject:
    return {"kty": "RSA", "kid": f"k{number}", "n": "w" * length, "e": "AQAB"}


KEY_SETS: Mapping[str, Make] = {
    "as many keys as a set may have": lambda: _keys([_rsa(number, 2_700) for number in range(MAX_KEYS)]),
    "more keys than a set may have": lambda: _keys([_rsa(number, 400) for number in range(10 * MAX_KEYS)]),
    "one key of 240 KB": lambda: _keys([_rsa(0, 240_000)]),
    "brackets": lambda: b"[" * MAX_KEYS_BYTES,
    "a key within arrays": lambda: b'{"keys":' + b"[" * 1_000 + b"{}" + b"]" * 1_000 + b"}",
    "more bytes than a set may have": lambda: _keys([], padding="x" * (4 * MAX_KEYS_BYTES)),
    "no JSON": lambda: b"\xff" * 1_000,
}
"""What a hostile issuer answers for its keys."""
DISCOVERY: Mapping[str, Make] = {
    "brackets": lambda: b"[" * MAX_DISCOVERY_BYTES,
    "more bytes than a document may have": lambda: b" " * (4 * MAX_DISCOVERY_BYTES),
}
"""What it answers for its discovery document, in place of one with the URL of its keys."""
