"""Whether tables hold the locations that their metadata names, and hold them alone (docs/design/state.md#rule-3 and
#rule-6)."""

from tests.simulation.programs.history import History
from tests.simulation.programs.reasons import locations_of
from tests.simulation.programs.states import CatalogState


def misplaced(history: History, *, overlap: bool) -> list[str]:
    """What is wrong with the locations of tables and views at any instant. With `overlap` they may share one."""
    wrong: dict[str, None] = {}
    for moment in history.moments:
        wrong |= dict.fromkeys(_misplaced(history, moment.state, overlap=overlap))
    return [*wrong]


def _misplaced(history: History, state: CatalogState, *, overlap: bool) -> list[str]:
    wrong: list[str] = []
    for relation in state.names.values():
        named = locations_of(history, state.files.get(relation.entity))
        held = tuple(f"{place}/" for place in relation.locations)
        missing = [place for place in named if not f"{place}/".startswith(held)]
        if missing:
            wrong.append(f"{relation.entity} is at {missing}, which it does not hold")
        if not overlap and state.taken(relation.locations, but=[relation.entity]):
            wrong.append(f"{relation.entity} holds {relation.locations}, which another table holds too")
    return wrong
