"""Warns of environment variables with the catalog's prefix that it does not have: most likely one is misspelt, and
would be ignored."""

from collections.abc import Iterator, Mapping

from arco_catalog.config import variables
from arco_catalog.config.variable import Variable

PREFIX = "ARCO_"


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields a warning for each variable named `ARCO_*` that the catalog does not have, in order, with the one that was
    probably meant if a name is similar."""
    known = {each.name for each in vars(variables).values() if isinstance(each, Variable)}
    for name in sorted(name for name in environment if name.startswith(PREFIX) and name not in known):
        from difflib import get_close_matches  # most commands never need it

        near = get_close_matches(name, known, n=1)
        yield f"unknown variable {name} is ignored" + (f": did you mean {near[0]}?" if near else "")
