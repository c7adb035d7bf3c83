"""The list of all conformance checks, in the order in which they run."""

from storage_backends.conformance import answers, objects, races
from storage_backends.conformance.check import Check

CREATION = Check("create", objects.creation)
"""If this fails, no other check writes."""

CHECKS = (
    Check("read what is missing", objects.absence, writes=False),
    Check("the store's time", answers.store_time, writes=False),
    CREATION,
    Check("create again", objects.second_creation),
    Check("replace the current version", objects.current_replacement),
    Check("replace a stale version", objects.stale_replacement),
    Check("replace what is missing", objects.missing_replacement),
    Check("read what one holds", objects.unchanged_read),
    Check("read a range", objects.ranges),
    Check("a body of 1 MB", objects.large_body),
    Check("names to be encoded", objects.odd_names),
    Check("list", objects.listed_objects),
    Check("order of a listing", objects.listing_order),
    Check("pages of a listing", objects.listing_pages, costly=True),
    Check("delete", objects.deletion),
    Check("versions after a deletion", objects.version_after_deletion),
    Check("conditional delete", objects.conditional_deletion),
    Check("race to create", races.race_to_create),
    Check("racing updates", races.racing_updates),
    Check("request ids", answers.request_ids, writes=False, needs_answers=True),
    Check("throttling", answers.throttling, writes=False, needs_answers=True, measures=True),
    Check("time of a PUT", answers.write_latency, measures=True),
    Check("time of a GET", answers.read_latency, measures=True),
)
