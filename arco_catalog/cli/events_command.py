"""The arguments of `arco events`, which start the command."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import EXAMPLE_TIME, CatalogOptions, Command, add_catalog, add_json, check_options
from arco_catalog.cli.options import instant, positive

EXAMPLES = """\
Lists the events of a catalog in their order, each as a line of JSON with the
token from which to go on after it. The feed has to be on: ARCO_EVENTS=true in
the environment of servers or functions.

`subscribe` has them sent to a webhook (https), a queue of SQS or a topic of SNS
(its ARN), a topic of Pub/Sub (projects/P/topics/T), a queue of Azure Storage or
a topic of Event Grid (its URL), or a topic of Kafka (kafka:T), by `arco serve`
or `arco tasks run`. The secret by which requests to a webhook are signed is
printed once. Events that a receiver never accepts are kept: `dead-letters`
lists them, and `resend` sends them again.

examples:
  arco events --store s3://bucket/catalog
  arco events --follow --from TOKEN --store s3://bucket/catalog
  arco events --name shop --type drop-table --store s3://bucket/catalog
  arco events subscribe alerts --to https://hooks.example.com/arco \\
    --store s3://bucket/catalog
  arco events subscriptions --store s3://bucket/catalog
  arco events dead-letters alerts --store s3://bucket/catalog
  arco events resend alerts --store s3://bucket/catalog
  arco events unsubscribe alerts --store s3://bucket/catalog
"""
ACTIONS = ("read", "subscribe", "subscriptions", "unsubscribe", "dead-letters", "resend")
OF_SUBSCRIPTION = ("subscribe", "unsubscribe", "dead-letters", "resend")
SELECTING = ("read", "subscribe")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "from_": SELECTING,
    "follow": ("read",),
    "limit": ("read",),
    "since": ("read",),
    "new": SELECTING,
    "type": SELECTING,
    "name": SELECTING,
    "to": ("subscribe",),
    "allow_private": ("subscribe",),
    "json": ("subscribe", "subscriptions"),
}
"""The actions of `arco events` to which each option belongs, by the option's attribute."""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments and options of `arco events`."""
    actions = f"{', '.join(ACTIONS[:-1])} or {ACTIONS[-1]} [default read]"
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="read", metavar="ACTION", help=actions)
    parser.add_argument("subscription", nargs="?", metavar="NAME", help="the subscription's name")
    parser.add_argument("--from", dest="from_", metavar="TOKEN", help="the events after this token")
    parser.add_argument("--follow", action="store_true", help="with read: wait for later events, until stopped")
    parser.add_argument("--limit", type=positive, metavar="N", help="with read: print at most so many events")
    parser.add_argument(
        "--since", type=instant, metavar="TIME", help=f"with read: events from this time on, such as {EXAMPLE_TIME}"
    )
    parser.add_argument("--new", action="store_true", help="only events that enter the feed from now on")
    parser.add_argument(
        "--type", action="append", metavar="TYPE", help="only events of this type, such as drop-table; repeatable"
    )
    parser.add_argument(
        "--name", action="append", metavar="NAME", help="only of this table or view, or in this namespace; repeatable"
    )
    parser.add_argument("--to", metavar="RECEIVER", help="with subscribe: the URL or ARN, or the full name of a topic")
    parser.add_argument(
        "--allow-private",
        action="store_true",
        help="with subscribe: the webhook may have a private address, or be http on this machine",
    )
    add_catalog(parser, environment)
    add_json(parser, "subscriptions as JSON; events always are")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco events`, and returns the exit code. Ends the process with 2 and a message if NAME or options
    don't fit the action, or both --new and --from are given."""
    from arco_catalog.cli import events
    from arco_catalog.cli.identifiers import parse_namespace

    action, named = parsed.action, parsed.subscription
    if action in OF_SUBSCRIPTION and named is None:
        parsed.parser.error(f"arco events {action} NAME: the subscription's name is required")
    if action not in OF_SUBSCRIPTION and named is not None:
        parsed.parser.error(f"arco events {action} takes no NAME")
    check_options(parsed, "events", OPTIONS)
    if action == "subscribe" and parsed.to is None:
        parsed.parser.error("arco events subscribe NAME --to RECEIVER: the receiver is required")
    if parsed.new and parsed.from_ is not None:
        parsed.parser.error(f"arco events {action}: --new and --from exclude each other")
    options = CatalogOptions.of(parsed)
    event_filter = events.event_filter_of(parsed.type, parsed.name and [parse_namespace(each) for each in parsed.name])
    match action:
        case "read":
            place, since = (parsed.from_, parsed.limit), parsed.since
            return events.run_read(options, event_filter, *place, since_ms=since, new=parsed.new, follow=parsed.follow)
        case "subscribe":
            wanted = events.SubscriptionRequest(named, parsed.to, event_filter, parsed.allow_private)
            return events.run_subscribe(options, wanted, parsed.from_, new=parsed.new, as_json=parsed.json)
        case "subscriptions":
            return events.run_list(options, as_json=parsed.json)
        case "unsubscribe":
            return events.run_unsubscribe(options, named)
        case "dead-letters":
            return events.run_dead_letters(options, named)
        case _:
            return events.run_resend(options, named)


COMMAND = Command("events", "print a catalog's events, or have them sent", EXAMPLES, add_arguments, run)
