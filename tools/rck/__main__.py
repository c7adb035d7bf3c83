"""Runs each chosen release of the REST Compatibility Kit over each chosen store: `python -m tools.rck [--kit VERSION
...] [--store local|s3|gcs|azure ...] [--lambda]`."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tools.rck import report
from tools.rck.kits import CANNOT_PASS, KITS, Kit, Server, Store
from tools.rck.run import Run, run


def main() -> int:
    """Run each kit over each store. Returns 0 if every test passed that can pass."""
    versions = {kit.version: kit for kit in KITS}
    parser = argparse.ArgumentParser(prog="rck", description=__doc__)
    parser.add_argument("--kit", nargs="+", choices=versions, default=list(versions), help="releases of the kit")
    parser.add_argument(
        "--store",
        nargs="+",
        choices=list(Store),
        default=[Store.LOCAL, Store.S3],
        help="the stores of the catalog, on this machine (default: local and s3)",
    )
    parser.add_argument(
        "--lambda",
        dest="server",
        action="store_const",
        const=Server.LAMBDA,
        default=Server.SERVE,
        help="test the deployed zip behind a local HTTP API or REST API, on S3 only",
    )
    arguments = parser.parse_args()
    stores = [Store(store) for store in arguments.store if arguments.server is Server.SERVE or store == Store.S3]
    runs = [(versions[version], store) for store in stores for version in arguments.kit]
    good = [_run_and_report(kit, store, arguments.server) for kit, store in runs]  # a failure does not end the others
    return 0 if all(good) else 1


def _run_and_report(kit: Kit, store: Store, server: Server) -> bool:
    """Run one kit over one store, print a report, and return whether there are no faults. Logs stay if there are."""
    scratch = Path(tempfile.mkdtemp(prefix="arco-rck-"))
    try:
        done = run(kit, store, scratch, server)
    except BaseException:
        sys.stdout.write(f"kit {kit.version} {store}: logs are left in {scratch}\n")
        raise
    sys.stdout.write("\n".join(_lines(kit, store, server, done)) + "\n")
    if done.faults:
        sys.stdout.write(f"  logs and reports are left in {scratch}\n")
    else:
        shutil.rmtree(scratch)
    sys.stdout.flush()
    return not done.faults


def _lines(kit: Kit, store: Store, server: Server, done: Run) -> list[str]:
    verdict = f"{len(done.faults)} WRONG" if done.faults else "all that can pass"
    head = (
        f"kit {kit.version:6}  {server:6}  {store:5}  {report.counts(done.outcomes)}  {done.seconds:.0f} s  {verdict}"
    )
    hopeless = [outcome for outcome in done.outcomes if outcome.test in CANNOT_PASS[store]]
    return [
        head,
        *(f"  {fault}" for fault in done.faults),
        *(f"  (cannot pass on {store}: {outcome.test}: {outcome.why})" for outcome in hopeless),
    ]


if __name__ == "__main__":
    sys.exit(main())
