"""Which names of namespaces, tables and views match a search: the names with words that start with words of the query,
in any case. A pure function of the query and the names."""

import re
from collections.abc import Iterator

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.index import Namespace
from storage_backends.lazy_dataclass import dataclass

MAX_QUERY = 255
"""The maximum number of characters of a query."""
MAX_WORDS = 8
"""The maximum number of words of a query."""
_CHUNK = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """The query of a search: its words, and its whole text (`start`), both in the form of `casefold`."""

    words: tuple[str, ...]
    start: str

    @classmethod
    def parse(cls, text: str) -> "SearchQuery":
        """Reads a query. Raises `BadRequest` if it has no character, more than `MAX_QUERY`, or more than `MAX_WORDS`
        words."""
        if not 1 <= len(text) <= MAX_QUERY:
            raise BadRequest(f"The query 'q' has {len(text)} characters: 1 to {MAX_QUERY} are allowed")
        words = tuple(words_of(text))
        if len(words) > MAX_WORDS:
            raise BadRequest(f"The query 'q' has {len(words)} words: at most {MAX_WORDS} are allowed")
        return cls(words, text.casefold())

    def may_match(self, name: str) -> bool:
        """Whether a name may match in some namespace. If not, it matches in none; this is cheaper to compute than
        `matches`."""
        return (self.words[-1] if self.words else self.start) in name.casefold()

    def matches(self, namespace: Namespace, name: str) -> bool:
        """Whether a name in a namespace matches: it starts with the whole query; or one of its words starts with the
        last word of the query, and for each other one a word of the name or of a level of the namespace does."""
        if name.casefold().startswith(self.start):
            return True
        own = [*words_of(name)]
        if not self.words or not any(word.startswith(self.words[-1]) for word in own):
            return False
        known = [*own, *(word for level in namespace for word in words_of(level))]
        return all(any(word.startswith(sought) for word in known) for sought in self.words[:-1])


def words_of(text: str) -> Iterator[str]:
    """Iterates over the words of a text in the form of `casefold`. A word is letters and digits alone. Another starts
    at a capital after a character that is none, and at the last of several capitals if a small letter follows."""
    for chunk in _CHUNK.findall(text):
        start = 0
        for place in range(1, len(chunk)):
            small_next = chunk[place + 1 : place + 2].islower()
            if chunk[place].isupper() and (small_next or not chunk[place - 1].isupper()):
                yield chunk[start:place].casefold()
                start = place
        yield chunk[start:].casefold()
