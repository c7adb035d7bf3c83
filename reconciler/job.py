"""The script for `spark-submit`. It imports the project from an archive (`--py-files`), or else from the checkout that
the script lies in, from which the job sends packages to executors."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from reconciler.__main__ import main

    sys.exit(main())
