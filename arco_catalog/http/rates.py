"""The rate of requests that each principal may send to one process (docs/operating.md#rates)."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import islice
from math import ceil

from arco_catalog.iceberg.errors import TooManyRequests

MAX_PRINCIPALS = 10_000
"""The limit of principals whose buckets are kept. Beyond it the one with the oldest last request begins anew."""


class RequestRates:
    """A token bucket for each principal, which holds one second's requests and is full at first. Of more than
    `MAX_PRINCIPALS` the one that gave a token least recently is forgotten, and is full from then on.

    A bucket is stored as the time at which it will be full again, in seconds of `clock`: a full one need not be stored.
    """

    def __init__(self, per_second: int, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, principal: Hashable) -> None:
        """Takes a token from the principal's bucket, and removes at most two buckets that are full or too many. Raises
        `TooManyRequests`, with the seconds to wait, if the principal's bucket has no token; then it changes nothing."""
        now, token = self._clock(), 1 / self._per_second
        full_at = max(self._full_at.get(principal, now), now) + token
        wait = full_at - now - 1  # a bucket that lacks more than a second's tokens has none left
        if wait > token / 2:  # which no rounding reaches
            retry_s = ceil(wait)
            raise TooManyRequests(
                f"More than {self._per_second} requests a second of this principal: nothing was done. Send the request "
                f"again in {retry_s} s",
                retry_s,
            )
        self._full_at[principal] = full_at
        self._full_at.move_to_end(principal)
        self._forget(now)

    def _forget(self, now: float) -> None:
        """Removes at most two buckets, from the oldest on: full ones, and any while there are more than
        `MAX_PRINCIPALS`."""
        for oldest in [*islice(self._full_at, 2)]:
            if self._full_at[oldest] > now and len(self._full_at) <= MAX_PRINCIPALS:
                break
            del self._full_at[oldest]
