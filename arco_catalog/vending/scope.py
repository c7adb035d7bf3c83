"""The scope of vended access: folders, and whether they may be written."""

from collections.abc import Callable, Sequence
from itertools import takewhile

from arco_catalog.state.locations import Location, outermost
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of vended access: folders of one table, and whether they may be written too. Its maker has checked that
    each is allowed."""

    locations: tuple[Location, ...]
    write: bool

    @classmethod
    def of(cls, locations: Sequence[Location], *, write: bool) -> "Scope":
        """Returns the scope of these folders, without those that lie in another of them."""
        return cls(tuple(outermost(locations)), write)

    def in_own_buckets(self, owns: Callable[[Location], bool]) -> "Scope":
        """Returns the scope with only the folders in buckets or containers that `owns` accepts, as the catalog may use
        all of them."""
        kept = [each for each in self.locations if owns(Location(each.scheme, each.authority, ()))]
        return Scope(tuple(kept), self.write)

    def in_store(self, scheme: str) -> tuple[Location, ...]:
        """Returns the folders with this scheme that can be vended: never a whole bucket or a catalog's state, even if a
        request names them by mistake."""
        return tuple(
            location
            for location in self.locations
            if location.scheme == scheme and location.authority and location.segments and not location.reserved
        )


def common_folder(locations: Sequence[Location]) -> str:
    """Returns the prefix under which a client finds the credential for all of these folders, at least one: the deepest
    folder that contains all, or only the scheme (`s3://`) if they are in several buckets. It limits where the client
    uses the credential, not its access. A folder has no slash at the end: engines list one by its bare name, too."""
    if len(locations) == 1:
        return locations[0].uri
    first = locations[0]
    if any(location.authority != first.authority for location in locations):
        return f"{first.scheme}://"
    levels = zip(*(location.segments for location in locations), strict=False)
    shared = tuple(level[0] for level in takewhile(lambda level: len({*level}) == 1, levels))
    return Location(first.scheme, first.authority, shared).uri
