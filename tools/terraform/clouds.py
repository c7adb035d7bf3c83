"""The differences between the three clouds for the Terraform of settings."""

from dataclasses import dataclass
from pathlib import Path

from tools.support.environment import PROJECT

INFRA = PROJECT / "infra"


@dataclass(frozen=True, slots=True)
class Cloud:
    """One of the modules in infra/. `program` runs the catalog there, `gateway` verifies callers before it, and
    `verifies_callers` if the catalog learns from it who they are. `environment` is the name of its variable for more
    environment variables."""

    folder: Path
    program: str
    gateway: str
    verifies_callers: bool
    environment: str
    log_level: str
    longest_name: int
    name_is_used_in: str
    token_key: str = "var.token_key_secret"
    reserved_environment: tuple[str, ...] = ()


AWS = Cloud(
    folder=INFRA,
    program="functions",
    gateway="the endpoint",
    verifies_callers=True,
    environment="environment",
    log_level="INFO",
    longest_name=28,
    name_is_used_in="a bucket's name",
    token_key="local.token_key_secret",
)
GOOGLE = Cloud(
    folder=INFRA / "google",
    program="service",
    gateway="Cloud Run",
    verifies_callers=False,
    environment="environment",
    log_level="warning",
    longest_name=19,
    name_is_used_in="a service account's name",
    reserved_environment=("PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"),
)
AZURE = Cloud(
    folder=INFRA / "azure",
    program="app",
    gateway="App Service",
    verifies_callers=True,
    environment="app_settings",
    log_level="INFO",
    longest_name=24,
    name_is_used_in="the names of accounts",
)
CLOUDS = (AWS, GOOGLE, AZURE)
