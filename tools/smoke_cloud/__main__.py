"""`make smoke-cloud URL=s3://bucket/prefix`: tries a bucket with the keys of the environment, prints what was
found, the time that it took and its estimated cost, and removes what it made."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence

from arco_catalog.cli.output import table
from tools.smoke_cloud.steps import KINDS, Steps
from tools.smoke_cloud.trial import Trial
from tools.smoke_cloud.vended import VendingOptions

HEADINGS = ("STEP", "STATUS", "SECONDS", *(kind.upper() for kind in KINDS), "FOUND")


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Tries the bucket that the arguments name. Returns 1 if a step failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.smoke_cloud", description=__doc__)
    parser.add_argument("url", help="s3://bucket/prefix, gs://bucket/prefix or abfss://container@account.../prefix")
    parser.add_argument("--aws-role-arn", help="a role that the keys may assume, to vend its credentials")
    parser.add_argument("--azure-tenant-id", help="the tenant, to vend signatures of a hierarchical account")
    parsed = parser.parse_args(arguments)
    options = VendingOptions(parsed.aws_role_arn, parsed.azure_tenant_id)
    try:
        trial = Trial.below(parsed.url, environment, options)
    except ValueError as error:
        parser.error(str(error))
    print(f"Everything is made below {trial.root}, and removed at the end.", flush=True)
    asyncio.run(trial.run())
    print(as_text(trial.steps, trial.root.partition(":")[0]))
    return 1 if trial.steps.failed else 0


def as_text(steps: Steps, scheme: str) -> str:
    """Formats a line for each step, and a line with the sums and the estimated cost."""
    lines = [
        (step.name, step.status, f"{step.seconds:.2f}", *(str(step.calls[kind]) for kind in KINDS), step.found)
        for step in steps.done
    ]
    calls = sum(sum(step.calls.values()) for step in steps.done)
    cost = steps.cost(scheme)
    price = "an unknown price" if cost is None else f"about ${cost:.4f} by list prices"
    return (
        f"{table(HEADINGS, lines, wide=True)}\n\n{calls:,} counted calls, {price}; those of both doctors come on top."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
