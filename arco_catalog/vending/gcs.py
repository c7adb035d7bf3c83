"""Issues credentials for Google Cloud Storage: exchanges a token of the catalog, or of a service account, for one that
a credential access boundary limits to the folders of a scope.

Sources: Google Cloud IAM, "Create short-lived credentials for a service account", `generateAccessToken`; STS API
reference, `token` (RFC 8693); Iceberg, `GCPProperties`, `OAuth2RefreshCredentialsHandler`.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from urllib.parse import quote, urlencode

from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps, loads
from arco_catalog.state.locations import Location
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.errors import CredentialsRefused, own_credentials
from arco_catalog.vending.gcs_boundary import access_boundary, grouped
from arco_catalog.vending.outbound import Outbound
from arco_catalog.vending.scope import Scope, common_folder
from arco_catalog.vending.storage_config import GcpStorage
from storage_backends.gcs.config import UNIVERSE
from storage_backends.gcs.credentials import ExpiringToken
from storage_backends.wire.http1 import Response

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
"""The OAuth scope that a token must have to be exchanged."""
MAX_LIFETIME_S = 3_600
"""The maximum lifetime of a token by which the catalog acts as another account."""
REFRESH_PROPERTY = "gcs.oauth2.refresh-credentials-endpoint"

_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_STORAGE = "https://www.googleapis.com/auth/devstorage.read_write"
_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")


class SourceTokens(Protocol):
    """The interface of sources of the catalog's own tokens of scope `CLOUD_PLATFORM`, such as `GoogleTokens`."""

    async def expiring(self) -> ExpiringToken:
        """Returns a token of the catalog's own account that is valid now, with its expiry. Raises `StoreDenied` if the
        account gets none, and `StoreUnavailable` if a later call may get one."""
        ...


class GcsIssuer:
    """Issues credentials for Google Cloud Storage: exchanges tokens for narrower ones in a `universe`, by default
    Google's. Answers to clients have an expiry after `lifetime_s` at most, although Google accepts a token until the
    exchanged one expires."""

    def __init__(
        self,
        outbound: Outbound,
        tokens: SourceTokens,
        now_ms: Callable[[], int],
        lifetime_s: int = 3_600,
        universe: str = UNIVERSE,
        sts_url: str | None = None,
        iam_url: str | None = None,
    ) -> None:
        self._outbound = outbound
        self._tokens = tokens
        self._now_ms = now_ms
        self._lifetime_s = lifetime_s
        self._sts_url = sts_url or f"https://sts.{universe}/v1/token"
        self._iam_url = iam_url or f"https://iamcredentials.{universe}"

    async def issue(self, config: GcpStorage, scope: Scope, _principal: str) -> tuple[StorageCredential, ...]:
        """Returns one credential for each group of folders that fits into one boundary; none if the scope has no folder
        in GCS that a boundary can name (`grouped`). Raises `Unavailable` if Google does not answer, and
        `CredentialsRefused` if it refuses, or the catalog has no credentials for Google."""
        groups = grouped(scope.in_store("gs"))
        if not groups:
            return ()
        source = await self._source(config)
        return tuple([await self._downscoped(source, group, write=scope.write) for group in groups])

    async def _source(self, config: GcpStorage) -> ExpiringToken:
        """Returns the token to narrow: the catalog's own, or that of the service account in `config`. Raises
        `Unavailable` if Google does not answer, and `CredentialsRefused` if it refuses, or the catalog has no
        credentials."""
        own = await own_credentials(self._tokens.expiring(), "Google")
        if config.service_account is None:
            return own
        account = quote(config.service_account, safe="@")
        url = f"{self._iam_url}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
        headers = {"authorization": f"Bearer {own.token}", "content-type": "application/json"}
        body = dumps({"scope": [_STORAGE, CLOUD_PLATFORM], "lifetime": f"{min(self._lifetime_s, MAX_LIFETIME_S)}s"})
        answer = _document(await self._outbound.send("POST", url, headers, body), f"to act as {config.service_account}")
        return ExpiringToken(_token(answer, "accessToken"), _iso_ms(answer.get("expireTime")))

    async def _downscoped(self, source: ExpiringToken, group: Sequence[Location], *, write: bool) -> StorageCredential:
        """Exchanges a token for one that opens only these locations, and returns it as a credential. Raises
        `Unavailable` if Google does not answer, and `CredentialsRefused` if it rejects the request, states no token, or
        states no lifetime where `source` has no time of expiry either."""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": _ACCESS_TOKEN,
            "subject_token": source.token,
            "subject_token_type": _ACCESS_TOKEN,
            "options": quote(dumps(access_boundary(group, write=write)).decode(), safe=""),
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        sent_ms = self._now_ms()
        answer = _document(
            await self._outbound.send("POST", self._sts_url, headers, urlencode(form).encode()), "to narrow a token"
        )
        token, lifetime_s = _token(answer, "access_token"), answer.get("expires_in")
        # Google leaves the lifetime out where it is that of the token that was exchanged.
        has_lifetime = isinstance(lifetime_s, int) and not isinstance(lifetime_s, bool)
        expires = [source.expires_ms] if source.expires_ms is not None else []
        expires += [sent_ms + int(str(lifetime_s)) * 1_000] if has_lifetime else []
        if not expires:
            raise CredentialsRefused(
                "Google states no whole number of seconds after which the narrowed token expires, and no time at which "
                "the token that was exchanged expires is known",
                "InvalidAnswer",
            )
        expires_ms = min(*expires, sent_ms + self._lifetime_s * 1_000)
        properties = {"gcs.oauth2.token": token, "gcs.oauth2.token-expires-at": str(expires_ms)}
        return StorageCredential(common_folder(group), properties, expires_ms, REFRESH_PROPERTY)


def _document(response: Response, purpose: str) -> JsonObject:
    """Reads the JSON object in a response to a request for `purpose`. Raises `CredentialsRefused` for any other
    response; of this, the message has only the status, and the code and the description of the error."""
    try:
        document = loads(response.body)
    except MalformedJson:
        document = None
    if response.status == 200 and isinstance(document, dict):
        return document
    code, message = _error_of(document if isinstance(document, dict) else {})
    raise CredentialsRefused(f"Google refuses {purpose}: status {response.status} {code} {message}"[:2_000], code)


def _error_of(document: JsonObject) -> tuple[str, str]:
    """Returns the code and the text of the error in a cloud's JSON response, in OAuth's form or in that of Google's
    APIs. Without an error the code is `InvalidAnswer`, and the text empty."""
    error = document.get("error")
    if isinstance(error, dict):
        return str(error.get("status", "")), str(error.get("message", ""))
    return str(error or "InvalidAnswer"), str(document.get("error_description", ""))


def _token(document: JsonObject, name: str) -> str:
    """Returns the token in the field `name` of a response of Google. Raises `CredentialsRefused` if there is no
    printable text of at most 16,384 characters."""
    token = document.get(name)
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise CredentialsRefused(
            "Google answered with something else than an access token of at most 16,384 printable characters",
            "InvalidAnswer",
        )
    return token


def _iso_ms(text: object) -> int:
    """Returns a time in a response of Google, in milliseconds since 1970. Raises `CredentialsRefused` for any text but
    an ISO 8601 time with an offset."""
    try:
        time = datetime.fromisoformat(str(text))
        if time.tzinfo is None:  # Python would take it for a time of this machine's zone
            raise ValueError(f"the time {text!r} in a response of Google has no offset from UTC")
        return int(time.timestamp() * 1_000)
    except ValueError as error:
        raise CredentialsRefused(
            "Google does not state when its token expires, or states no valid time", "InvalidAnswer"
        ) from error
