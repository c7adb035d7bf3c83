"""HEAD as of a commit, as the objects of commits give it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.state import commit_edits
from arco_catalog.state.commit_edits import chain_of, head_of, is_whole
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.collection import registry as collected_registry

Peek = Callable[[str], bytes | None]


def head_as_of(commit: str, peek: Peek, paths: Paths) -> bytes | None:
    """The bytes of HEAD as of a commit; None if an object of which it is made is missing. `peek` returns what is
    stored under a key."""

    def document(each: str) -> JsonObject | None:
        body = peek(paths.registry_commit(each))
        read = None if body is None else loads(body)
        assert read is None or isinstance(read, dict)
        return read

    last = document(commit)
    if last is None or is_whole(last):
        return peek(paths.registry_commit(commit))
    chain = [each for each in map(document, chain_of(last)) if each is not None]
    return dumps(head_of(chain), sort_keys=True) if len(chain) == len(chain_of(last)) else None


@contextmanager
def short_chains(wanted: bool = True) -> Iterator[None]:
    """Chains of commit objects with only edits are so short that a few commits make several."""
    with pytest.MonkeyPatch.context() as patch:
        if wanted:
            patch.setattr(commit_edits, "WHOLE_EVERY", 4)
            patch.setattr(collected_registry, "WHOLE_EVERY", 4)
        yield
