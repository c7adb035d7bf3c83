"""Warns of environment variables that begin with `ARCO_` and that the catalog does not have: most likely the name is
misspelt, and the value would be ignored."""

from collections.abc import Iterator, Mapping

from arco_catalog.config import variables
from arco_catalog.config.variable import Variable

PREFIX = "ARCO_"


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields a warning for each variable named `ARCO_*` that the catalog does not have, in the order of their names.
    The warning suggests the most similar name of a variable, if there is one."""
    known = {each.name for each in vars(variables).values() if isinstance(each, Variable)}
    for name in sorted(name for name in environment if name.startswith(PREFIX) and name not in known):
        from difflib import get_close_matches  # most commands never need it

        near = get_close_matches(name, known, n=1)
        yield f"unknown variable {name} is ignored" + (f": did you mean {near[0]}?" if near else "")
