"""Opens the files of a delegated table, with the credentials in the task and no others.

The service's own credentials never open a location that a caller names. The operator decides to which endpoints
requests go: `config` may name one that the operator allows, and no other (docs/security.md#the-delegation-service).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.config.variables import AZURE_CLIENT, GCS_CLIENT, S3_CLIENT
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.files import Mount
from arco_catalog.state.locations import Location
from storage_backends.open import StoreOpener, opener_in

Opens = Callable[[Mapping[str, str]], StoreOpener]
"""Makes an opener of stores from the variables of an environment."""

CREDENTIALS_NEEDED = "credentials needed"
"""The beginning of the summary of a task that failed because its credentials were lost with its process."""

_OF_OPERATOR = (
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"),
    *("AZURE_STORAGE_ENDPOINT", "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "STORAGE_EMULATOR_HOST", "REQUESTS_CA_BUNDLE"),
    *(variable.name for variable in (S3_CLIENT, AZURE_CLIENT, GCS_CLIENT)),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
"""The operator's variables that a store uses: endpoints, regions, clients and proxies, never credentials."""
_REGION = re.compile(r"[a-z0-9-]{1,32}")
_ENDPOINTS: Mapping[str, str] = {"s3.endpoint": "AWS_ENDPOINT_URL_S3"}
"""The variable for a property that may name an endpoint other than the operator's own."""
_REDIRECTS = re.compile(r"(?i)(endpoint|connection-string|proxy|(^|[.-])(host|uri|url)$)")
"""Names of properties by which some FileIO would send requests to another endpoint."""
_REFRESHES = re.compile(r"refresh-credentials-endpoint$|^s3\.signer|^signer\.")
"""Names of properties with the endpoints for further credentials or signatures. The service sends no request there."""


class CredentialsMissing(BadRequest):
    """The `config` of a submission has no credentials for the store of the table."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The environment variables that open the stores of one delegated task, and in `secrets` the values of the task's
    `config` with eight characters or more, which messages must not have; none for a store without credentials."""

    environment: Mapping[str, str] = field(repr=False)
    secrets: Sequence[str] = field(repr=False)

    def mounts(self, roots: Sequence[Location], opens: Opens = opener_in) -> list[Mount]:
        """Opens a store for each of these locations, with the credentials of the task. Raises `BadRequest` if one can't
        be opened."""
        opener = opens(self.environment)
        try:
            return [Mount(root, opener(root.uri)) for root in roots]
        except ValueError as error:
            raise BadRequest(
                "The table's store cannot be opened, so this request has changed nothing: submit the task with a "
                f"config by which the store can be opened: {self.redacted(str(error))}"
            ) from None

    def redacted(self, text: str) -> str:
        """Returns a text with `***` in place of each secret of the task's credentials."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def storage_for(
    location: Location, config: Mapping[str, str], operator: Mapping[str, str], allowed_endpoints: Sequence[str]
) -> Storage:
    """Returns the environment that opens the store of a location with the credentials in `config`, and as secrets all
    values in `config` of eight characters or more; without credentials or secrets for a scheme that needs none. Of
    `operator`, the service's own environment, only variables for endpoints, regions, clients and proxies are used; an
    S3 endpoint or region in `config` replaces the operator's. Raises `CredentialsMissing` if `config` has none for the
    location, and `BadRequest` for an endpoint that the operator does not allow, or an invalid region."""
    environment = {name: operator[name] for name in _OF_OPERATOR if operator.get(name)}
    environment.update(_endpoint(config, environment, allowed_endpoints))
    keys = _CREDENTIALS.get(location.scheme)
    if keys is None:
        return Storage(environment, ())
    found = keys(location, config)
    if found is None:
        raise CredentialsMissing(
            f"{CREDENTIALS_NEEDED}: operation_parameters.config has none, or only a part of them, for "
            f"{location.scheme}://{location.authority}, so this request has changed nothing"
        )
    secrets = sorted({value for value in config.values() if len(value) >= 8}, key=len, reverse=True)
    return Storage({**environment, **found}, secrets)


def _endpoint(config: Mapping[str, str], environment: Mapping[str, str], allowed: Sequence[str]) -> Mapping[str, str]:
    """Returns environment variables for the S3 endpoint and the region in `config`; endpoints for other credentials or
    signatures are not used. Raises `BadRequest` for any other endpoint that is neither in `environment` nor in
    `allowed`, and for an invalid region."""
    found: dict[str, str] = {}
    own = {_normal(value) for name, value in environment.items() if "ENDPOINT" in name or name.endswith("_HOST")}
    permitted = own | {_normal(each) for each in allowed}
    for name, value in config.items():
        if _REFRESHES.search(name) or not _REDIRECTS.search(name):
            continue
        if _normal(value) not in permitted:
            raise BadRequest(
                f"Not allowed: {name} in operation_parameters.config is an endpoint that the operator does not allow"
            )
        if name in _ENDPOINTS:
            found[_ENDPOINTS[name]] = value
    region = config.get("client.region") or config.get("s3.region")
    if region is not None:
        if not _REGION.fullmatch(region):
            raise BadRequest("Not allowed: the region in operation_parameters.config is not the name of a region")
        found["AWS_REGION"] = region
    return found


def _normal(endpoint: str) -> str:
    """Returns an endpoint as it is compared: in lower case, without blanks around it and slashes at the end."""
    return endpoint.strip().rstrip("/").lower()


def _s3(_location: Location, config: Mapping[str, str]) -> Mapping[str, str] | None:
    """Returns the variables for S3 that hold a task's credentials; None if `config` lacks the access key's id or the
    secret."""
    access, secret = config.get("s3.access-key-id"), config.get("s3.secret-access-key")
    if not access or not secret:
        return None
    token = config.get("s3.session-token")
    keys = {"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret}
    return {**keys, "AWS_SESSION_TOKEN": token} if token else keys


def _gcs(_location: Location, config: Mapping[str, str]) -> Mapping[str, str] | None:
    """Returns the variables for GCS that hold a task's credentials; None without any."""
    token = config.get("gcs.oauth2.token")
    return {"GOOGLE_OAUTH_ACCESS_TOKEN": token} if token else None


def _azure(location: Location, config: Mapping[str, str]) -> Mapping[str, str] | None:
    """Returns the variable for Azure with the SAS token in a task's `config`: the one for the location's host, else for
    the account, else for any; None without one."""
    host = location.authority.rpartition("@")[2]
    names = (f"adls.sas-token.{host}", f"adls.sas-token.{host.partition('.')[0]}", "adls.sas-token")
    token = next((config[name] for name in names if config.get(name)), None)
    return {"AZURE_STORAGE_SAS_TOKEN": token} if token else None


_CREDENTIALS: Mapping[str, Callable[[Location, Mapping[str, str]], Mapping[str, str] | None]] = {
    "s3": _s3,
    "gs": _gcs,
    "abfss": _azure,
}
