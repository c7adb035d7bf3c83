"""Why credentials could not be had although the catalog is configured for them."""

from arco_catalog.iceberg.errors import InternalError


class CredentialsRefused(InternalError):
    """The cloud refused credentials or sent a malformed response, or the deployment's own credentials are missing or
    wrong, so that an operator must act. `code` is the cloud's code for the reason, or one of ours."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
