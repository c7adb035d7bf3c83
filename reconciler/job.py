"""What `spark-submit` is given. It puts this script's folder on the path, and the project has to be there: as an
archive (`--py-files`), or else as the checkout that the script lies in, whose packages the job takes to executors."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from reconciler.__main__ import main

    sys.exit(main())
