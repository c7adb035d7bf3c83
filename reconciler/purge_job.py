"""The script for `spark-submit` that executes purges, as `job.py` is for other jobs."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from reconciler.purge import main

    sys.exit(main())
