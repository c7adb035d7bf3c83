"""Issues credentials for S3 by AssumeRole of STS: temporary keys of the catalog's role, which a session policy limits
to the folders of a scope.

Sources: STS API reference, `AssumeRole`, "Common errors"; Iceberg, `S3FileIOProperties`, `AwsClientProperties`,
`VendedCredentialsProvider`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from hashlib import sha256
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.state.locations import Location
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.errors import CredentialsRefused, own_credentials
from arco_catalog.vending.outbound import Outbound
from arco_catalog.vending.s3_policy import grouped, session_policy
from arco_catalog.vending.scope import Scope, common_folder
from arco_catalog.vending.storage_config import DEFAULT_REGION, AwsStorage
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.credentials import CredentialSource
from storage_backends.s3.endpoint import domain_of
from storage_backends.s3.signature import Credentials, signed, signing_stamp
from storage_backends.s3.signature import Scope as SigningScope
from storage_backends.wire.dates import iso_date_ms
from storage_backends.wire.http1 import Response

MIN_LIFETIME_S = 900
"""The shortest lifetime that STS accepts."""
REFRESH_PROPERTY = "client.refresh-credentials-endpoint"

_TOO_LARGE = "PackedPolicyTooLarge"
_TRANSIENT = frozenset({"Throttling", "ThrottlingException", "ServiceUnavailable", "RequestLimitExceeded", "SlowDown"})
_NOT_IN_A_SESSION_NAME = re.compile(r"[^\w+=,.@-]", re.ASCII)
_LIKE_A_DIGEST = re.compile(r".*-[0-9a-f]{8}", re.DOTALL)
_SECRET = re.compile(r"[\x21-\x7e]{1,16384}")


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The access key, secret key and token of an assumed role's session, as STS returned them, and when they expire."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(repr=False)
    expires_ms: int


class StsIssuer:
    """Issues credentials for S3: assumes the roles of catalogs with the identity of `credentials`. It requests
    `lifetime_s`, or the minimum of STS if that is longer; answers to clients have the end of `lifetime_s` as expiry, or
    that of STS if it is earlier."""

    def __init__(
        self,
        outbound: Outbound,
        credentials: CredentialSource,
        now_ms: Callable[[], int],
        lifetime_s: int = 3_600,
    ) -> None:
        self._outbound = outbound
        self._credentials = credentials
        self._now_ms = now_ms
        self._lifetime_s = lifetime_s

    async def issue(self, config: AwsStorage, scope: Scope, principal: str) -> tuple[StorageCredential, ...]:
        """Returns one credential for all folders in S3 if they fit into one policy, else one a folder, without folders
        that no policy can name or for which the policy is too long; none if `config` has no role or no STS. Raises the
        errors of `_assume_role`: `Unavailable` if a later try may succeed, and `CredentialsRefused` if an operator must
        act."""
        if not config.assumes_role:
            return ()
        issued: list[StorageCredential] = []
        groups = grouped(scope.in_store("s3"), config, write=scope.write)
        while groups:
            group = groups.pop(0)
            sent_ms = self._now_ms()
            try:
                keys = await self._assume_role(config, session_policy(group, config, write=scope.write), principal)
            except CredentialsRefused as error:
                if error.code != _TOO_LARGE or len(group) == 1:  # STS packs policies, and limits that size, too
                    raise
                groups = [(location,) for location in group] + groups
            else:
                expires_ms = min(keys.expires_ms, sent_ms + self._lifetime_s * 1_000)
                issued.append(_credential(config, group, keys, expires_ms))
        return tuple(issued)

    async def _assume_role(self, config: AwsStorage, policy: str, principal: str) -> SessionKeys:
        """Assumes the configured role with a session policy, and returns the keys of the session. Raises `Unavailable`
        if STS does not answer or is busy, or the server's own credentials are not there yet, and `CredentialsRefused`
        if STS rejects the request or answers something else than keys, or the server has no credentials."""
        parameters = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": config.role_arn or "",
            "RoleSessionName": session_name(principal),
            "DurationSeconds": str(max(self._lifetime_s, MIN_LIFETIME_S)),
            "Policy": policy,
            **({"ExternalId": config.external_id} if config.external_id else {}),
        }
        url = sts_url(config)
        body = urlencode(parameters).encode()
        path = urlsplit(url).path or "/"
        own = await own_credentials(self._credentials.current(), "AWS")
        headers = signed(
            own,
            SigningScope(config.region or DEFAULT_REGION, "sts"),
            signing_stamp(self._now_ms()),
            "POST",
            path,
            "",
            {"host": urlsplit(url).netloc, "content-type": "application/x-www-form-urlencoded; charset=utf-8"},
            body,
        )
        return read_answer(await self._outbound.send("POST", url, headers, body), config.role_arn or "")


def session_keys(credential: StorageCredential) -> Credentials:
    """Returns the access key, secret key and session token in a vended credential for S3, which must have all three."""
    names = ("access-key-id", "secret-access-key", "session-token")
    access, secret, token = (credential.config[f"s3.{name}"] for name in names)
    return Credentials(access, secret, token)


def sts_url(config: AwsStorage) -> str:
    """Returns the URL at which the role is assumed: the configured endpoint of STS, also one of Amazon's; without one,
    that of the store, first the internal one (S3-compatible stores have one for S3 and STS); or Amazon's STS in the
    region, if no endpoint is configured or all that are configured are Amazon's endpoints of S3."""
    configured = config.sts_endpoint or config.endpoint_internal or config.endpoint
    if configured and (config.sts_endpoint or not config.is_amazon):
        return configured if urlsplit(configured).path else f"{configured}/"
    region = config.region or DEFAULT_REGION
    return f"https://sts.{region}.{domain_of(region)}/"


def session_name(principal: str) -> str:
    """Returns the name of a principal's session, as in CloudTrail: `arco-` and the principal's name, at most 64
    letters, digits and a few other characters. If characters were replaced or cut off, or the name ends like one with a
    digest, a digest is appended, so that two principals have different names."""
    name = f"arco-{_NOT_IN_A_SESSION_NAME.sub('-', principal)}"
    if name == f"arco-{principal}" and len(name) <= 64 and not _LIKE_A_DIGEST.fullmatch(name):
        return name
    return f"{name[:55]}-{sha256(principal.encode()).hexdigest()[:8]}"


def read_answer(response: Response, role: str) -> SessionKeys:
    """Reads the keys in a response of AssumeRole; `role` is named in errors. Raises `CredentialsRefused` for an error
    and for anything else than the document that the API describes, `Unavailable` for a passing failure. Messages quote
    nothing of a response that may hold a secret."""
    root = _parsed(response.body)
    if response.status != 200:
        code, message = (_find(root, name) for name in ("Code", "Message"))
        if code in _TRANSIENT:
            raise Unavailable(
                f"No credentials for files, to give or to sign with, can be had now: STS is busy ({code}). Try again"
            )
        raise CredentialsRefused(
            f"STS refuses to assume the role {role}: status {response.status} {code}: {message}"[:2_000], code
        )
    path = ("AssumeRoleResult", "Credentials")
    if root is None or _local(root) != "AssumeRoleResponse":
        raise _unreadable()
    for name in path:
        root = _only_child(root, name)
    access, secret, token, expiration = (
        (_only_child(root, name).text or "").strip()
        for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    )
    if not all(_SECRET.fullmatch(text) for text in (access, secret, token)):
        raise _unreadable()
    try:
        return SessionKeys(access, secret, token, iso_date_ms(expiration))
    except ValueError as error:
        raise _unreadable() from error


def _credential(config: AwsStorage, group: Sequence[Location], keys: SessionKeys, expires_ms: int) -> StorageCredential:
    """Returns the credential for clients that has the keys of a session for these folders, the properties of the
    storage, and this expiry."""
    properties = {
        **config.client_properties,
        "s3.access-key-id": keys.access_key,
        "s3.secret-access-key": keys.secret_key,
        "s3.session-token": keys.token,
        "s3.session-token-expires-at-ms": str(expires_ms),
    }
    return StorageCredential(common_folder(group), properties, expires_ms, REFRESH_PROPERTY)


def _parsed(body: bytes) -> ElementTree.Element | None:
    """Reads an XML document; None if it is malformed or contains `<!`, by which a declared entity could expand to
    anything."""
    if b"<!" in body:
        return None
    try:
        return ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):  # LookupError: an unknown encoding
        return None


def _local(element: ElementTree.Element) -> str:
    """Returns the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _find(root: ElementTree.Element | None, name: str) -> str:
    """Returns the text of the first element with a name, without unprintable characters; empty without one."""
    found = () if root is None else (element.text or "" for element in root.iter() if _local(element) == name)
    return "".join(character for character in next(iter(found), "") if character.isprintable())


def _only_child(element: ElementTree.Element, name: str) -> ElementTree.Element:
    """Returns the only child element with a name. Raises `CredentialsRefused` if there is none, or several."""
    children = [child for child in element if _local(child) == name]
    if len(children) != 1:
        raise _unreadable()
    return children[0]


def _unreadable() -> CredentialsRefused:
    """Returns the error for a response of STS that can't be read."""
    return CredentialsRefused("STS answered AssumeRole with something else than credentials", "InvalidAnswer")
