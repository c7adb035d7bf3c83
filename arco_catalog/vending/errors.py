"""Why credentials could not be had although the catalog is configured for them."""

from arco_catalog.iceberg.errors import InternalError


class CredentialsRefused(InternalError):
    """The cloud refused to give credentials, or gave what cannot be read: an operator has to act. `code` is the
    cloud's own word for the reason."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
