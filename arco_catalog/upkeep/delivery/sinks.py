"""Makes the receivers that subscriptions name."""

from collections.abc import Callable, Mapping

from arco_catalog.config.variables import EVENTS
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.subscription import Subscription
from arco_catalog.upkeep.delivery.sink import Sink

Sinks = Callable[[Subscription], Sink]
"""Makes the receiver of a subscription. Raises `ValueError` for one that can't be used, and `StoreError` for wrong
credentials."""


def sinks_from_env(environment: Mapping[str, str], runtime: Runtime) -> Sinks | None:
    """Returns the function that makes the receivers of subscriptions, with the credentials in the environment
    variables; None where these do not turn the event feed on. Raises `ValueError` for a wrong value of ARCO_EVENTS;
    other variables are read when a receiver is made, or when it sends."""
    return sinks_from(environment, runtime.now_ms) if EVENTS.read(environment) else None


def sinks_from(environment: Mapping[str, str], now_ms: Callable[[], int]) -> Sinks:
    """Returns the function that makes the receiver of a subscription: a queue or topic with the credentials of this
    environment, or else a webhook. It raises `ValueError` for a subscription that names none of these or has no usable
    secret for a webhook, and raises as `queue_of` does, which does not find all wrong credentials."""

    def make(subscription: Subscription) -> Sink:
        # Imported here: most processes deliver nothing.
        from arco_catalog.upkeep.delivery.queues import queue_of
        from arco_catalog.upkeep.delivery.webhook import Webhook

        queue = queue_of(subscription.sink, environment, now_ms)
        if queue is not None:
            return queue
        if subscription.secret is None:
            raise ValueError(
                f"{subscription.sink!r} is no queue, no topic, and no webhook for which the subscription has a "
                "secret: remove the subscription, and make another one"
            )
        return Webhook(subscription.sink, subscription.secret, now_ms, allows_private=subscription.allows_private)

    return make
