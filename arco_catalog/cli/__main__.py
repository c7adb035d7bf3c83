"""Runs the `arco` command as `python -m arco_catalog.cli`."""

import sys

from arco_catalog.cli import main

sys.exit(main())
