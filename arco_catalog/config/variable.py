"""One environment variable: its name, what its text means, and its value if it is not set."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from storage_backends.lazy_dataclass import dataclass

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Variable(Generic[T_co]):
    """An environment variable of the catalog. `parse` turns the text into the value, and raises `ValueError` for an
    invalid text; `default` is the text that counts if the variable is not set or is empty, None if there is none.
    `help` and `metavar` (how a value looks) are for people."""

    name: str
    help: str
    parse: Callable[[str], T_co]
    default: str | None = None
    metavar: str | None = None

    def read(self, environment: Mapping[str, str]) -> T_co:
        """Returns the value that this variable has in an environment, or that of the default if it is not set or is
        empty there. Without a default, raises `KeyError` if the variable is not set, and parses an empty text as it is.
        Raises `ValueError`, which names the variable, for an invalid text."""
        text = environment.get(self.name) or self.default
        return self.require(environment) if text is None else self._parsed(text)

    def require(self, environment: Mapping[str, str]) -> T_co:
        """Returns the value that this variable has in an environment, where it has to be set, whatever the default.
        Raises `KeyError` if it is not set, and `ValueError`, which names the variable, for an invalid text."""
        return self._parsed(environment[self.name])

    def _parsed(self, text: str) -> T_co:
        """Returns the value that a text of this variable means. Raises `ValueError`, which names the variable, for an
        invalid text."""
        try:
            return self.parse(text)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error
