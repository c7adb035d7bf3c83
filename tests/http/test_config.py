"""What a client is told first, and that it is true."""

import re
from pathlib import Path

import pytest
import yaml

from arco_catalog.http.app import create_app
from arco_catalog.http.exchange import Effect
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.json import JsonObject
from tests.http.client import Client
from tests.http.conftest import Site

