"""Catalogs of a realm by simulation: in any order, with a crash or another fault at any call; and rules left out, which
must show."""

import logging
from collections.abc import Mapping

import pytest

from tests.simulation import rule_mutations_for_realms as rule_mutations
from tests.simulation.explore import Scenario, explore, trace
from tests.simulation.faults import FAULTS, NO_FAULTS, every_single_fault
from tests.simulation.known_runs import find
from tests.simulation.realms_scenarios import (
    a_catalog_made_again_beside_slow_drops,
    catalogs_found_by_a_server_that_was_idle,
    purges_beside_drops_of_their_catalog,
    requests_that_are_drawn,
    undrops_beside_drops,
)
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import TIMES, count, sample

SCENARIOS = (
    a_catalog_made_again_beside_slow_drops,
    catalogs_found_by_a_server_that_was_idle,
    purges_beside_drops_of_their_catalog,
    undrops_beside_drops,
    requests_that_are_drawn,
)
SECONDS = 120.0 * TIMES


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_they_hold_in_any_order(scenario: Scenario) -> None:
    assert explore(scenario, range(count(24)), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_they_hold_through_any_fault(scenario: Scenario) -> None:
    calls = {name: kinds for name, kinds in trace(scenario).calls.items() if name not in ("setup", "last")}
    plans = sample(scenario, list(every_single_fault(calls, list(FAULTS))), 48)

    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).complete


PLANTED: Mapping[Mutation, Scenario] = {
    rule_mutations.a_name_removed_from_any_catalog: a_catalog_made_again_beside_slow_drops,
    rule_mutations.a_change_by_rights_on_a_predecessor: a_catalog_made_again_beside_slow_drops,
    rule_mutations.a_catalog_closed_over_its_purges: purges_beside_drops_of_their_catalog,
    rule_mutations.purges_that_pass_a_closed_registry: purges_beside_drops_of_their_catalog,
    rule_mutations.an_undrop_that_goes_on_purging: purges_beside_drops_of_their_catalog,
    rule_mutations.a_drop_by_an_id_of_before_the_undrop: undrops_beside_drops,
    rule_mutations.an_undrop_at_a_location_that_was_taken: undrops_beside_drops,
    rule_mutations.segments_of_a_cached_head_believed_to_be_there: catalogs_found_by_a_server_that_was_idle,
}


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
@pytest.mark.usefixtures("planted")
def test_a_rule_that_is_left_out_shows(bug: Mutation) -> None:
    assert find(bug, PLANTED[bug], ((seed, NO_FAULTS) for seed in range(60)), seconds=SECONDS)
