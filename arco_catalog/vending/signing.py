"""Remote signing: signs single requests to S3, if they do no more than the scope allows.

The signed request is written anew from the parsed one, so that the server reads what was checked. A client may add
headers after it got a signature, or send another body. S3 refuses an `x-amz-` header that is not signed, and a body
without the signed hash. Other stores may not: MinIO copies any object that the signing key may read if
`x-amz-copy-source` is added to a PUT, and deletes the keys of another body of DeleteObjects. So the signer uses keys
that give access to the scope alone, where there are such keys (service.py).

Sources: Iceberg REST specification, `RemoteSignRequest`; Iceberg, `S3V4RestSignerClient`; PyIceberg, `S3V4RestSigner`;
Amazon S3 API reference, "Signature Calculations for the Authorization Header", "Common Request Headers".
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from urllib.parse import urlsplit

from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.iceberg.shapes import quoted
from arco_catalog.state.locations import Location
from arco_catalog.vending.delete_body import keys_to_delete
from arco_catalog.vending.s3_operation import check_key, decoded, operation_of, parameters_of
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.sign_request import SignedRequest, SignRequest
from arco_catalog.vending.storage_config import DEFAULT_REGION, AwsStorage
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.endpoint import domain_of
from storage_backends.s3.signature import Credentials, path_of, query_of, signed, signing_stamp
from storage_backends.s3.signature import Scope as SigningScope

UNSIGNED = "UNSIGNED-PAYLOAD"

_URI = re.compile(r"(https?)://([A-Za-z0-9._:\[\]-]+)(/[!-\"$->@-~]*)?(?:\?([!-\"$-~]*))?")
_HASH = re.compile(r"[0-9a-f]{64}")
_PRINTABLE = re.compile(r"[\x20-\x7e]{0,8192}")
_NOTHING = sha256(b"").hexdigest()
_HASHES = frozenset({UNSIGNED, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"})

_ALSO_SIGNED = frozenset({"content-type", "content-md5", "content-encoding"})
_ALLOWED = frozenset(
    {
        *("x-amz-content-sha256", "x-amz-decoded-content-length", "x-amz-trailer", "x-amz-te", "x-amz-user-agent"),
        *("x-amz-sdk-checksum-algorithm", "x-amz-checksum-mode", "x-amz-checksum-algorithm", "x-amz-checksum-type"),
        *("x-amz-storage-class", "x-amz-mp-object-size", "x-amz-request-payer", "x-amz-expected-bucket-owner"),
        *("x-amz-optional-object-attributes",),
    }
)
_ALLOWED_FAMILIES = ("x-amz-checksum-", "x-amz-server-side-encryption")
_NEVER_MEANT = ("authorization", "cookie", "transfer-encoding", "x-http-method", "x-method-override")
_TRACING = frozenset({"x-amzn-trace-id", "x-request-id"})


@dataclass(frozen=True, slots=True)
class _Place:
    """The bucket and key that a request is about. `base` is the part of the path in front of the key; `key` is empty
    for a request about the bucket."""

    scheme: str
    authority: str
    base: str
    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that a scope allows, as it is signed. `locations` are the folders that it is about, `given` the names
    of the headers that the client sent, `writes` is whether it needs the right to write, and `bucket_in_host` is
    whether the host names the bucket."""

    operation: str
    writes: bool
    method: str
    origin: str
    authority: str
    path: str
    query: str
    headers: Mapping[str, str]
    given: frozenset[str]
    body_hash: str
    region: str
    locations: frozenset[Location]
    bucket_in_host: bool

    @property
    def could_become_another(self) -> bool:
        """Whether a client could change the signed request to one about other keys, on a server that accepts headers
        and bodies which are not signed."""
        return self.method == "PUT" or self.operation == "DeleteObjects"


def check_request(config: AwsStorage, scope: Scope, request: SignRequest) -> CheckedRequest:
    """Returns the request to sign, which is put together from the parts of `request` that were checked, without
    headers that need no signature. Raises `Forbidden` if the scope does not allow the request, and for a region other
    than the catalog's, or an operation, URI, header or body that can't be signed."""
    region = config.region or DEFAULT_REGION
    if request.region != region:
        raise Forbidden(f"Not signed: the region must be {region}, that of the catalog, not {quoted(request.region)}")
    locations = scope.in_store("s3")
    place, query = _understood(config, locations, request.uri)
    operation = operation_of(request.method, place.key, query)
    if operation.writes and not scope.write:
        raise Forbidden(
            f"Not signed: {operation.name} needs the right to write the table's files, which the caller lacks, or "
            "which no caller has to a table that follows another catalog's"
        )
    headers = _signed_headers(request.headers, place.authority)
    if operation.name == "DeleteObjects":
        keys = _keys_of(request.body)
        body_hash = _binding_hash(request.body or "", headers)
    else:
        keys = [place.key if operation.on_key else query["prefix"]]
        body_hash = headers.get("x-amz-content-sha256") or (UNSIGNED if request.method in ("PUT", "POST") else _NOTHING)
    return CheckedRequest(
        operation.name,
        operation.writes,
        request.method,
        f"{place.scheme}://{place.authority}",
        place.authority,
        place.base + path_of(place.key),
        query_of(query.items()),
        headers,
        frozenset(request.headers),
        body_hash,
        region,
        frozenset(_folder_of(key, place.bucket, locations) for key in keys),
        place.base == "/",
    )


def sign(checked: CheckedRequest, credentials: Credentials, now_ms: int) -> SignedRequest:
    """Returns the URI of the request and the headers to add to it, which sign it by these credentials, without headers
    that it has already."""
    answer = signed(
        credentials,
        SigningScope(checked.region),
        signing_stamp(now_ms),
        checked.method,
        checked.path,
        checked.query,
        {**checked.headers, "host": checked.authority},
        b"",
        body_hash=checked.body_hash,
    )
    added = {name: value for name, value in answer.items() if name not in checked.given and name != "host"}
    uri = f"{checked.origin}{checked.path}{f'?{checked.query}' if checked.query else ''}"
    return SignedRequest(uri, checked.writes, added)


def _understood(config: AwsStorage, locations: Sequence[Location], uri: str) -> tuple[_Place, dict[str, str]]:
    """Reads from the URI of a request to S3 the bucket and key that it is about, and the query parameters, decoded.
    Raises `Forbidden` unless it is well-formed, at the catalog's endpoint, and in a bucket of the scope."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise Forbidden(
            "Not signed: the URI of a request to S3 must have the form http(s)://host[:port]/path[?query], without a "
            "user or fragment, and with spaces and other characters than ASCII escaped"
        )
    scheme, authority, path, query = match[1], match[2].lower(), match[3] or "/", match[4] or ""
    authority = authority.removesuffix(":443" if scheme == "https" else ":80")
    plain = decoded(path[1:])
    for bucket in dict.fromkeys(location.authority for location in locations):
        for host, in_host in _hosts(config, bucket):
            if (scheme, authority) != host:
                continue
            if in_host:
                return _Place(scheme, authority, "/", bucket, plain), parameters_of(query)
            if plain == bucket or plain.startswith(f"{bucket}/"):
                key = plain[len(bucket) + 1 :]
                base = f"/{bucket}/" if key or plain.endswith("/") else f"/{bucket}"
                return _Place(scheme, authority, base, bucket, key), parameters_of(query)
    raise Forbidden(
        "Not signed: the URI must have the endpoint of the catalog's storage, which must be without a path, and a "
        "bucket of the table, which may be in the host only for Amazon's S3 or with pathStyleAccess false"
    )


def _hosts(config: AwsStorage, bucket: str) -> list[tuple[tuple[str, str], bool]]:
    """Returns the schemes and hosts that a request about a bucket may have, with whether the host names the bucket;
    empty for an endpoint with a path. Another server than Amazon's may not support buckets in hosts, and then take the
    first segment of the key for the bucket, so the support must be configured (`pathStyleAccess: false`). A bucket with
    capital letters is never in the host."""
    if config.endpoint:
        parts = urlsplit(config.endpoint)
        authority = parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")
        if parts.path not in ("", "/"):
            return []  # signatures cover the path that the server sees, which something in front of it changes
        services, scheme, named = [authority], parts.scheme, config.path_style is False or config.is_amazon
    else:
        region = config.region or DEFAULT_REGION
        domain = domain_of(region)
        services = [f"s3.{region}.{domain}", f"s3.dualstack.{region}.{domain}"]
        services += ["s3.amazonaws.com"] if region == DEFAULT_REGION else []
        scheme, named = "https", True
    path_style = [((scheme, service), False) for service in services]
    if not named or bucket != bucket.lower():  # a host does not tell cases apart: it would be another bucket
        return path_style
    return path_style + [((scheme, f"{bucket}.{service}"), True) for service in services]


def _folder_of(key: str, bucket: str, locations: Sequence[Location]) -> Location:
    """Returns the first of these folders that contains a key, or that contains the prefix of a LIST, which must begin
    with the folder and a slash. Raises `Forbidden` if there is none, or if the key may not be used."""
    check_key(key)
    for location in locations:
        if location.authority == bucket and key.startswith(f"{location.path}/"):
            return location
    raise Forbidden(
        "Not signed: the key is outside of the table's folders (the prefix of a LIST must begin with one and a slash)"
    )


def _signed_headers(given: Mapping[str, tuple[str, ...]], authority: str) -> dict[str, str]:
    """Returns the headers among `given` that are to be signed. Raises `Forbidden` for a header whose name has other
    characters than letters, digits and hyphens, or whose value is not printable ASCII or is too long, for one that
    could change the meaning of the request, a `host` other than `authority`, and an invalid hash of the body."""
    kept: dict[str, str] = {}
    for name, values in given.items():
        value = ",".join(values)
        if not re.fullmatch(r"[a-z0-9-]+", name) or not _PRINTABLE.fullmatch(value):
            raise Forbidden(
                f"Not signed: the name of the header {name[:100]!r} must be letters, digits and hyphens, and the value "
                "at most 8,192 printable ASCII characters"
            )
        if name == "host" and value.lower().removesuffix(":443").removesuffix(":80") != authority:
            raise Forbidden("Not signed: the header host differs from the host of the URI")
        if name in _ALSO_SIGNED:
            kept[name] = value
        elif name.startswith("x-amz-"):
            if name not in _ALLOWED and not name.startswith(_ALLOWED_FAMILIES):
                raise Forbidden(
                    f"Not signed: the header {name[:100]} is never allowed, as it could change what the request does"
                )
            kept[name] = value
        elif (name.startswith("x-") and name not in _TRACING) or name.startswith(_NEVER_MEANT):
            raise Forbidden(
                f"Not signed: the header {name[:100]} is never allowed, as it could change what the request does"
            )
    body_hash = kept.get("x-amz-content-sha256", UNSIGNED)
    if body_hash not in _HASHES and not _HASH.fullmatch(body_hash):
        raise Forbidden(
            "Not signed: the header x-amz-content-sha256 must be the SHA-256 of the body, in lower case, or one of "
            f"{', '.join(sorted(_HASHES))}: the parts of a body are not signed one by one"
        )
    return kept


def _keys_of(body: str | None) -> list[str]:
    """Reads the keys that DeleteObjects deletes. Raises `Forbidden` without a body, and for one that is too long or
    malformed, or has anything else than keys and the flag `Quiet`."""
    if body is None:
        raise Forbidden(
            "Not signed: DeleteObjects is only signed with its body: send it as body of the request to sign"
        )
    return keys_to_delete(body)


def _binding_hash(body: str, headers: Mapping[str, str]) -> str:
    """Returns the hash to sign, so that the signature is for this body only: the SHA-256 of the body, also if the
    client sent no hash; or `UNSIGNED` if it sent that as hash, and the SHA-256 in a checksum header, which is signed.
    Raises `Forbidden` for any other hash, and for `UNSIGNED` with only a CRC or MD5, for which another body can be
    made."""
    digest = sha256(body.encode())
    given = headers.get("x-amz-content-sha256", digest.hexdigest())
    bound = headers.get("x-amz-checksum-sha256") == b64encode(digest.digest()).decode()
    if given != digest.hexdigest() and not (given == UNSIGNED and bound):
        raise Forbidden(
            "Not signed: the header x-amz-content-sha256 of DeleteObjects must be missing, or be the SHA-256 of the "
            "body in the request to sign, or UNSIGNED-PAYLOAD with that SHA-256, in base64, in x-amz-checksum-sha256"
        )
    return given
