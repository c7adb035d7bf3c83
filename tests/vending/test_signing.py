"""Remote signing: what a table's engines send is signed as S3 reads it, and nothing else is."""

import re
from base64 import b64encode
from hashlib import md5, sha256
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials as BotocoreCredentials  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest, Forbidden
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.state.locations import Location
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.sign_request import NO_CACHE, SignedRequest, SignRequest
from arco_catalog.vending.signing import check_request, sign
from arco_catalog.vending.storage_config import AwsStorage
from storage_backends.s3.signature import Credentials, signing_stamp
from tests.support.fake_runtime import FakeRuntime

OWN = AwsStorage(region="eu-west-1", endpoint="http://127.0.0.1:9000", path_style=True)
IN_HOST = AwsStorage(region="eu-west-1", endpoint="http://127.0.0.1:9000", path_style=False)
AMAZON = AwsStorage(region="eu-west-1")
HOST = "http://127.0.0.1:9000"
KEYS = Credentials("AKOWN", "own-secret", "own-token")
READ = Scope.of([Location.parse("s3://lake/db/t")], write=False)
WRITE = Scope.of([Location.parse("s3://lake/db/t"), Location.parse("s3://pond/more")], write=True)
NOW_MS = FakeRuntime().ms
EMPTY = sha256(b"").hexdigest()


def request(
    method: str,
    uri: str,
    headers: dict[str, str] | None = None,
    body: str | None = None,
    region: str = "eu-west-1",
) -> SignRequest:
    given = {name.lower(): (value,) for name, value in (headers or {}).items()}
    return SignRequest(region, uri if "://" in uri else f"{HOST}{uri}", method, given, body)


def signed(wanted: SignRequest, scope: Scope = WRITE, config: AwsStorage = OWN) -> SignedRequest:
    return sign(check_request(config, scope, wanted), KEYS, NOW_MS)


def delete_body(*keys: str) -> str:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}<Quiet>true</Quiet></Delete>'


READS = [
    ("GET", "/lake/db/t/data/1.parquet"),
    ("GET", "/lake/db/t/data/1.parquet?x-id=GetObject"),
    ("HEAD", "/lake/db/t/metadata/v1.json"),
    ("GET", "/lake?list-type=2&prefix=db%2Ft%2F"),
    ("GET", "/lake/?list-type=2&prefix=db/t/data&delimiter=%2F&max-keys=1000&continuation-token=a%2Bb%3D"),
    ("GET", "/lake?prefix=db/t/&marker=db/t/x&encoding-type=url"),
    ("GET", "/lake/db/t/p=a%252Fb/1.parquet"),
    ("GET", "/lake/db/t/caf%C3%A9/a%20b.parquet"),
]
WRITES = [
    ("PUT", "/lake/db/t/data/1.parquet"),
    ("PUT", "/pond/more/data/1.parquet"),
    ("DELETE", "/lake/db/t/data/1.parquet"),
    ("POST", "/lake/db/t/data/1.parquet?uploads"),
    ("POST", "/lake/db/t/data/1.parquet?uploads="),
    ("PUT", "/lake/db/t/data/1.parquet?partNumber=1&uploadId=abc"),
    ("POST", "/lake/db/t/data/1.parquet?uploadId=abc"),
    ("DELETE", "/lake/db/t/data/1.parquet?uploadId=abc"),
    ("GET", "/lake/db/t/data/1.parquet?uploadId=abc&max-parts=2"),
]


@pytest.mark.parametrize(("method", "uri"), READS)
def test_what_reads_inside_is_signed_for_readers(method: str, uri: str) -> None:
    assert signed(request(method, uri), READ).headers["x-amz-content-sha256"] == EMPTY


@pytest.mark.parametrize(("method", "uri"), WRITES)
def test_what_writes_inside_is_signed_for_writers_and_refused_to_readers(method: str, uri: str) -> None:
    assert "authorization" in signed(request(method, uri), WRITE).headers
    with pytest.raises(Forbidden):
        signed(request(method, uri), READ)


@pytest.mark.parametrize(
    ("config", "uri"),
    [
        (OWN, "http://127.0.0.1:9000/lake/db/t/1"),
        (OWN, "HTTP://127.0.0.1:9000/lake/db/t/1".replace("HTTP", "http")),
        (IN_HOST, "http://lake.127.0.0.1:9000/db/t/1"),
        (AMAZON, "https://s3.eu-west-1.amazonaws.com/lake/db/t/1"),
        (AMAZON, "https://lake.s3.eu-west-1.amazonaws.com/db/t/1"),
        (AMAZON, "https://lake.s3.eu-west-1.amazonaws.com:443/db/t/1"),
        (AMAZON, "https://lake.s3.dualstack.eu-west-1.amazonaws.com/db/t/1"),
    ],
)
def test_both_styles_of_addresses_are_understood(config: AwsStorage, uri: str) -> None:
    assert signed(request("GET", uri), READ, config).uri == uri.replace(":443", "")


def test_the_global_endpoint_is_that_of_its_region_alone() -> None:
    uri = "https://lake.s3.amazonaws.com/db/t/1"

    assert signed(request("GET", uri, region="us-east-1"), READ, AwsStorage(region="us-east-1")).uri == uri
    with pytest.raises(Forbidden):
        signed(request("GET", uri), READ, AMAZON)


def test_a_bucket_in_a_host_is_only_believed_of_servers_that_are_said_to_know_it() -> None:
    """A server that does not would take the key's first folder, `db`, for the bucket."""
    for config in (OWN, AwsStorage(region="eu-west-1", endpoint=HOST)):
        with pytest.raises(Forbidden):
            signed(request("GET", "http://lake.127.0.0.1:9000/db/t/1"), READ, config)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "application/octet-stream", "Content-MD5": "q83v", "Range": "bytes=0-1", "User-Agent": "x"},
        {
            "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
            "x-amz-checksum-crc32": "AAAAAA==",
            "amz-sdk-request": "attempt=1",
        },
        {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-trailer": "x-amz-checksum-crc32"},
        {"x-amz-server-side-encryption": "aws:kms", "Content-Type": "  two   spaces ", "Host": "127.0.0.1:9000"},
    ],
)
@pytest.mark.parametrize("uri", ["/lake/db/t/a%20b+c.parquet", "/lake/db/t/x?partNumber=1&uploadId=a%2Fb"])
def test_the_signature_is_the_one_that_botocore_makes(headers: dict[str, str], uri: str) -> None:
    answer = signed(request("PUT", uri, headers))

    sent = {**{name.lower(): value for name, value in headers.items()}, "host": "127.0.0.1:9000", **answer.headers}
    names = sent["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    theirs = AWSRequest("PUT", answer.uri, {name: sent[name] for name in names})
    theirs.context.update(timestamp=signing_stamp(NOW_MS), signing={})
    signer = S3SigV4Auth(BotocoreCredentials("AKOWN", "own-secret"), "s3", "eu-west-1")
    signature = signer.signature(signer.string_to_sign(theirs, signer.canonical_request(theirs)), theirs)
    assert sent["authorization"].endswith(f"Signature={signature}")
    assert {"host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"} <= {*names}
    assert {name for name in sent if name.startswith("x-amz-")} <= {*names}
    assert not {name.lower() for name in headers} & {*answer.headers}


OUTSIDE = [
    "/lake/db/t2/1",
    "/lake/db/t",
    "/lake/db",
    "/lake/db/T/1",
    "/lake",
    "/",
    "",
    "/lake2/db/t/1",
    "/lak/db/t/1",
    "/db/t/1",
    "//lake/db/t/1",
    "/lake//db/t/1",
    "/lake/db//t/1",
    "/lake/db/t//1",
    "/lake/db/t/../t2/1",
    "/lake/db/t/./1",
    "/lake/db/t/..",
    "/lake/db/t/%2e%2e/t2/1",
    "/lake/db/t/.%2E/t2/1",
    "/lake/db/t/%252e%252e/t2/1",
    "/lake/db/t/%25252e%25252e%25252ft2/1",
    "/lake/db/t/..%2ft2/1",
    "/lake/db/t/..%252ft2/1",
    "/lake/db/t/%2e%2e%5ct2/1",
    "/lake/db/t/..\\t2/1",
    "/lake/db/t/a\\b",
    "/lake/db/t/%5c..%5ct2",
    "/lake/db/t/%00/1",
    "/lake/db/t/%0d%0aHost:x",
    "/lake/db/t/%7f",
    "/lake/db/t/%C2%85",
    "/lake/db/t/%",
    "/lake/db/t/%2",
    "/lake/db/t/%zz",
    "/lake/db/t/%u002e",
    "/lake/db/t/%ff",
    "/lake/db/t/%c0%ae%c0%ae/1",
    "/lake/db/t/é",
    "/lake/db/t/a b",
    "/lake/db/t/a\tb",
    "/lake/db/t/a\nb",
    "/lake/db/t/1#fragment",
    "/lake/db/t/_catalog/x",
    "/lake/db/t/_CATALOG/x",
    "/lake/db/t/%255fcatalog/x",
    "/lake/db/t/_realm/core/manifest.json",
    "/lake/db/t/.arco-store",
    "/lake/db/t/" + "x" * 1_100,
    "/pond/db/t/1",
    "/lake/more/1",
    "/lake/_catalog/core/manifest.json",
    "/lake/%2e%2e/lake/db/t/1",
    "/pond/../lake/db/t/1",
]
HOSTS = [
    "http://127.0.0.1:9001",
    "http://127.0.0.1",
    "https://127.0.0.1:9000",
    "http://127.0.0.1:9000@evil.example.com",
    "http://evil.example.com@127.0.0.1:9000",
    "http://evil.example.com",
    "http://127.0.0.1:9000.evil.example.com",
    "http://127.0.0.1:09000",
    "http://localhost:9000",
    "http://127.1:9000",
    "http://[::1]:9000",
    "http://127.0.0.1:9000:9000",
    "http://pond.127.0.0.1:9000",
    "ftp://127.0.0.1:9000",
    "file://127.0.0.1:9000",
    "http:127.0.0.1:9000",
    "http:///127.0.0.1:9000",
    "http:\\\\127.0.0.1:9000",
    "http://127.0.0.1:9000\\",
    "http://127.0.0.1:9000 ",
    " http://127.0.0.1:9000",
    "http://127.0.0.1:9000%2f",
    "http://127.0.0.1%3a9000",
    "//127.0.0.1:9000",
    "",
]
SUB_RESOURCES = [
    *(
        "acl",
        "policy",
        "tagging",
        "torrent",
        "restore",
        "retention",
        "legal-hold",
        "attributes",
        "versions",
        "versionId=1",
    ),
    *("versioning", "lifecycle", "website", "cors", "logging", "notification", "replication", "location", "uploads=1"),
    *("select&select-type=2", "encryption", "object-lock", "requestPayment", "publicAccessBlock", "ownershipControls"),
    *("accelerate", "analytics", "inventory", "metrics", "intelligent-tiering", "policyStatus", "session", "append"),
    *("response-content-type=text/html", "response-content-disposition=x", "X-Amz-Signature=x", "renameObject"),
    *("X-Amz-Security-Token=x", "X-Amz-Algorithm=AWS4-HMAC-SHA256", "uploadId=", "uploadId=a&uploadId=b", "=x", "&&"),
    *(
        "partNumber=1",
        "uploadId=a&partNumber=x",
        "uploadId=a&acl",
        "uploads&tagging",
        "x-id=PutObjectAcl",
        "x-id=",
        "a+b",
    ),
    *("uploadId=a;acl", "uploadId=a%26acl%00", "%61cl", "ACL", "x-amz-copy-source=/pond/x", "delete", "list-type=2"),
]
LISTS = [
    *("list-type=2", "prefix=", "list-type=2&prefix=", "list-type=2&prefix=db/", "list-type=2&prefix=db/t"),
    *(
        "list-type=2&prefix=db/t2/",
        "list-type=2&prefix=/db/t/",
        "list-type=2&prefix=db/t/../t2/",
        "prefix=db/t/..",
    ),
    *("list-type=1&prefix=db/t/", "list-type=2&prefix=db/t/&prefix=db/", "list-type=2&Prefix=db/t/", "prefix=db//t/"),
    *(
        "list-type=2&prefix=db/t/&versions",
        "list-type=2&prefix=db/t/&uploads",
        "versions&prefix=db/t/",
        "uploads&prefix=db/t/",
    ),
    *("list-type=2&prefix=db%252Ft%252F", "list-type=2&prefix=db/t/&encoding-type=xml", "prefix=db/t/&max-keys=-1"),
    *("list-type=2&prefix=db+t/", "list-type=2&prefix=db/t/;acl", "list-type=2&prefix=more/", "acl&prefix=db/t/"),
    *("policy", "location", "versioning", "", "delete&prefix=db/t/", "list-type=2&prefix=db/t/_catalog/"),
]
HEADERS = [
    *("x-amz-copy-source", "X-Amz-Copy-Source", "x-amz-copy-source-range", "x-amz-copy-source-if-match", "x-amz-acl"),
    *("x-amz-grant-read", "x-amz-grant-full-control", "x-amz-tagging", "x-amz-tagging-directive", "x-amz-mfa"),
    *("x-amz-website-redirect-location", "x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date"),
    *("x-amz-bypass-governance-retention", "x-amz-security-token", "x-amz-date", "authorization", "x-amz-version-id"),
    *("x-amz-metadata-directive", "x-amz-rename-source", "x-amz-write-offset-bytes", "x-amz-object-ownership"),
    *("x-goog-copy-source", "x-goog-acl", "x-oss-copy-source", "x-ms-copy-source", "x-http-method-override"),
    *("x-forwarded-host", "x-original-url", "x-rewrite-url", "transfer-encoding", "cookie", "x-amz-s3session-token"),
    *("x-amz-meta-snowball-auto-extract", "x-amz-meta-minio-snowball-prefix", "x-minio-force-delete", "x-amz-meta-a"),
    *("x-amz-create-session-mode", "x-amz-fwd-status", "x-amz-request-route", "x_amz_acl", "x-amz-acl ", "a:b", "é"),
]


@pytest.mark.parametrize("uri", OUTSIDE)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_what_lies_outside_or_could_be_read_so_is_refused(method: str, uri: str) -> None:
    with pytest.raises(Forbidden):
        signed(request(method, f"{HOST}{uri}"), READ if method in ("GET", "HEAD") else WRITE)


@pytest.mark.parametrize("config", [OWN, IN_HOST, AMAZON])
@pytest.mark.parametrize("host", HOSTS)
def test_another_host_is_refused(host: str, config: AwsStorage) -> None:
    with pytest.raises(Forbidden):
        check_request(config, WRITE, SignRequest("eu-west-1", f"{host}/lake/db/t/1", "GET", {}))


@pytest.mark.parametrize("query", SUB_RESOURCES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_what_is_no_operation_of_the_list_is_refused(method: str, query: str) -> None:
    with pytest.raises(Forbidden):
        signed(request(method, f"/lake/db/t/1?{query}"))


@pytest.mark.parametrize("query", LISTS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_the_bucket_is_only_listed_with_a_prefix_inside(method: str, query: str) -> None:
    with pytest.raises(Forbidden):
        signed(request(method, f"/lake?{query}", body=delete_body("db/t/1")))


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_header_that_would_change_the_request_is_refused(method: str, name: str) -> None:
    with pytest.raises(Forbidden):
        signed(request(method, "/lake/db/t/1", {name: "/pond/secret"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"),
        ("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"),
        ("x-amz-content-sha256", ""),
        ("x-amz-content-sha256", EMPTY.upper()),
        ("content-type", "text/plain\r\nx-amz-acl: public-read"),
        ("content-type", "text/plain\nx-amz-acl:public-read"),
        ("content-type", "é"),
        ("host", "evil.example.com"),
        ("host", "lake.127.0.0.1:9000"),
    ],
)
def test_a_header_with_a_value_that_cannot_be_is_refused(name: str, value: str) -> None:
    with pytest.raises(Forbidden):
        signed(request("PUT", "/lake/db/t/1", {name: value}))


@pytest.mark.parametrize("region", ["us-east-1", "EU-WEST-1", "eu-west-1/s3", "", "eu-west-1 "])
def test_the_region_is_fixed(region: str) -> None:
    with pytest.raises(Forbidden, match="region"):
        signed(request("GET", "/lake/db/t/1", region=region))


def test_an_endpoint_with_a_path_is_not_signed_for() -> None:
    config = AwsStorage(region="eu-west-1", endpoint=f"{HOST}/s3", path_style=True)
    with pytest.raises(Forbidden):
        signed(request("GET", "/s3/lake/db/t/1"), READ, config)


def test_a_bucket_with_capitals_is_never_one_in_a_host() -> None:
    scope = Scope.of([Location.parse("s3://Lake/t")], write=False)

    assert signed(request("GET", "https://s3.eu-west-1.amazonaws.com/Lake/t/1"), scope, AMAZON)
    for uri in ("https://lake.s3.eu-west-1.amazonaws.com/t/1", "https://Lake.s3.eu-west-1.amazonaws.com/t/1"):
        with pytest.raises(Forbidden):
            signed(request("GET", uri), scope, AMAZON)


def test_nothing_is_signed_without_a_location() -> None:
    for scope in (Scope((), write=True), Scope.of([Location.parse("s3://lake")], write=True)):
        with pytest.raises(Forbidden):
            signed(request("GET", "/lake/db/t/1"), scope)


def test_deletes_are_bound_to_the_body_that_was_shown() -> None:
    body = delete_body("db/t/1", "db/t/a&amp;b", "db/t/é")
    digest = sha256(body.encode())

    assert signed(request("POST", "/lake?delete", body=body)).headers["x-amz-content-sha256"] == digest.hexdigest()
    for headers in (
        {"x-amz-content-sha256": digest.hexdigest()},
        {
            "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
            "x-amz-checksum-sha256": b64encode(digest.digest()).decode(),
        },
    ):
        authorization = signed(request("POST", "/lake?delete=", headers, body)).headers["authorization"]
        assert all(name in authorization for name in headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"},
        {"x-amz-content-sha256": EMPTY},
        {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"},
        {"x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-checksum-sha256": b64encode(sha256(b"").digest()).decode()},
        {
            "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
            "content-md5": b64encode(md5(delete_body("db/t/1").encode()).digest()).decode(),
        },
    ],
)
def test_deletes_whose_signature_would_not_bind_the_body_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="must be missing, or be the SHA-256 of the body"):
        signed(request("POST", "/lake?delete", headers, delete_body("db/t/1")))


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "{}",
        delete_body(),
        delete_body("db/t2/1"),
        delete_body("db/t/1", "db/t2/1"),
        delete_body("db/t/1", ""),
        delete_body("db/t/../t2/1"),
        delete_body("db/t//1"),
        delete_body("more/1"),
        delete_body(" db/t/1"),
        delete_body("db/t/_catalog/x"),
        delete_body("db/t/%2e%2e/x"),
        delete_body("db/t/&#13;x"),
        delete_body(*(f"db/t/{number}" for number in range(1_001))),
        delete_body("db/t/" + "x" * (2 << 20)),
        delete_body("db/t/1</Key><VersionId>v</VersionId><Key>"),
        delete_body("db/t/1</Key><VersionId>v</VersionId>").replace("</VersionId></Key>", "</VersionId>"),
        delete_body("db/t/1</Key><Key>db/t2/1"),
        delete_body("db/t/<b>1</b>"),
        delete_body("db/t/1<!-- x -->"),
        delete_body("<![CDATA[db/t/1]]>"),
        delete_body("db/t/1<?x y?>"),
        delete_body("db/t/1").replace("<Object>", '<Object x="y">'),
        delete_body("db/t/1").replace("<Key>", '<Key xml:space="preserve">'),
        delete_body("db/t/1").replace("Delete", "Remove"),
        delete_body("db/t/1").replace("<Quiet>true</Quiet>", "<Object/>"),
        delete_body("db/t/1").replace("<Quiet>true</Quiet>", "<Key>db/t2/1</Key>"),
        delete_body("db/t/1").replace("http://s3.amazonaws.com/doc/2006-03-01/", "urn:other"),
        delete_body("db/t/1") + delete_body("db/t2/1"),
        '<!DOCTYPE Delete [<!ENTITY k "db/t2/1">]>' + delete_body("&k;"),
        '<?xml version="1.0" encoding="utf-16"?>' + delete_body("db/t/1"),
        '<?xml version="1.0" encoding="UTF-7"?>' + delete_body("db/t/1"),
        '<?xml version="1.1"?>' + delete_body("db/t/1"),
        "\ufeff" + '<?xml version="1.0" encoding="utf-16"?>' + delete_body("db/t/1"),
        delete_body("db/t/\ud800"),
    ],
)
def test_a_body_that_deletes_anything_else_is_refused(body: str | None) -> None:
    with pytest.raises(Forbidden):
        signed(request("POST", "/lake?delete", body=body))


def test_a_body_with_a_declaration_and_spaces_between_elements_is_read() -> None:
    body = '<?xml version="1.0" encoding="UTF-8"?>\n' + delete_body("db/t/1").replace("><", ">\n  <")

    assert signed(request("POST", "/lake?delete", body=body))


PIECES = [
    *(
        "lake",
        "pond",
        "db",
        "t",
        "t2",
        "more",
        "/",
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%2F",
        "%25",
        "%5c",
        "\\",
        "?",
        "#",
        "&",
    ),
    *(
        "=",
        "prefix",
        "list-type=2",
        "acl",
        "uploads",
        "uploadId=x",
        "delete",
        "127.0.0.1:9000",
        "http://",
        "@",
        ":",
        "+",
    ),
    *("%C3%A9", "é", " ", ";", "_catalog", "x-id=GetObject", "partNumber=1", "%00", "lake.127.0.0.1:9000", "db/t/"),
]


def as_s3_reads(uri: str, in_host: bool) -> tuple[str, str, dict[str, str]]:
    """Bucket, key and parameters, by a reader that has nothing in common with the one that judged."""
    parts = urlsplit(uri)
    plain = unquote(parts.path, errors="strict")
    query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    if in_host and parts.netloc != "127.0.0.1:9000":
        return parts.netloc.removesuffix(".127.0.0.1:9000"), plain.removeprefix("/"), query
    assert parts.netloc == "127.0.0.1:9000"
    _, bucket, key = plain.split("/", 2) if plain.count("/") > 1 else (*plain.split("/"), "")
    return bucket, key, query


@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"]),
    start=st.sampled_from(["/lake/db/t/", "/lake/db/t", "/lake", "/", "", "//", "/pond/more/"]),
    pieces=st.lists(st.sampled_from(PIECES), max_size=8),
    config=st.sampled_from([OWN, IN_HOST]),
    host=st.sampled_from([HOST, HOST, "http://lake.127.0.0.1:9000", "http://pond.127.0.0.1:9000"]),
    scope=st.sampled_from([READ, WRITE]),
    keys=st.lists(st.sampled_from(["db/t/1", "db/t2/1", "db/t/../x"]), max_size=2),
)
@example("GET", "/lake/db/t/", ["x"], OWN, HOST, READ, [])
@example("GET", "/lake", ["?", "prefix", "=", "db/t/"], OWN, HOST, READ, [])
@example("GET", "/lake/db/t/", ["x"], IN_HOST, "http://lake.127.0.0.1:9000", READ, [])
def test_whatever_is_signed_names_only_what_is_inside(
    method: str, start: str, pieces: list[str], config: AwsStorage, host: str, scope: Scope, keys: list[str]
) -> None:
    wanted = request(method, f"{host}{start}{''.join(pieces)}", body=delete_body(*keys))
    try:
        answer = signed(wanted, scope, config)
    except Forbidden:
        return
    bucket, key, query = as_s3_reads(answer.uri, config is IN_HOST)
    named = [key] if key else [*keys] if "delete" in query else [query["prefix"]]
    folders = {"lake": ["db/t/"], "pond": ["more/"] if scope is WRITE else []}[bucket]
    for name in named:
        assert any(name.startswith(folder) for folder in folders)
        assert not {"", ".", ".."} & {*name.removesuffix("/").split("/")}
    assert scope is WRITE or method in ("GET", "HEAD")
    assert not {*query} - {"prefix", "list-type", "uploads", "uploadId", "partNumber", "delete", "x-id"}


@given(name=st.text(min_size=1, max_size=30).filter(lambda text: not {".", ".."} & {*re.split(r"[/\\]", text)}))
def test_a_key_is_signed_as_s3_reads_it(name: str) -> None:
    """The path that was signed, decoded, is the key that was asked for."""
    key = f"db/t/x{name}y"
    try:
        answer = signed(request("GET", f"/lake/{quote(key, safe='')}"), READ)
    except (Forbidden, UnicodeEncodeError):
        return
    assert as_s3_reads(answer.uri, in_host=False)[1] == key


def test_the_request_of_the_specification_is_read_and_answered() -> None:
    document: JsonValue = {
        "region": "eu-west-1",
        "uri": f"{HOST}/lake/db/t/1",
        "method": "get",
        "headers": {"Range": ["bytes=0-1"], "amz-sdk-invocation-id": ["1"]},
        "properties": {"a": "b"},
        "provider": "s3",
    }
    answer = signed(SignRequest.parse(document), READ).json

    assert answer["uri"] == f"{HOST}/lake/db/t/1"
    assert isinstance(answer["headers"], dict)
    assert {*answer["headers"]} == {"authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"}
    assert all(isinstance(values, list) and len(values) == 1 for values in answer["headers"].values())
    assert NO_CACHE == {"Cache-Control": "no-cache"}


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"region": "r", "uri": "u", "method": "GET"},
        {"region": "r", "uri": "u", "method": "PATCH", "headers": {}},
        {"region": "r", "uri": "u", "method": "OPTIONS", "headers": {}},
        {"region": 1, "uri": "u", "method": "GET", "headers": {}},
        {"region": "r", "uri": "", "method": "GET", "headers": {}},
        {"region": "r", "uri": "u", "method": "GET", "headers": {"a": "b"}},
        {"region": "r", "uri": "u", "method": "GET", "headers": {"a": [1]}},
        {"region": "r", "uri": "u", "method": "GET", "headers": {"x-amz-acl": ["a"], "X-Amz-Acl": ["b"]}},
        {"region": "r", "uri": "u", "method": "GET", "headers": {}, "body": {}},
        {"region": "r", "uri": "u", "method": "GET", "headers": {}, "provider": "gcs"},
    ],
)
def test_a_request_that_is_not_of_the_form_is_a_bad_one(document: JsonValue) -> None:
    with pytest.raises(BadRequest):
        SignRequest.parse(document)
