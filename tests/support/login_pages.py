"""The pages of identity providers, as a person in a browser fills them in."""

import re
import urllib.request
from collections.abc import Callable, Mapping
from html import unescape
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlencode, urljoin

ANSWER_S = 60.0


def submit_forms(url: str, fill_in: Callable[[str], Mapping[str, str]]) -> str:
    """Submits the form of each page, from this one on, and returns the text of the first page without a form. `fill_in`
    returns the fields of a form from its HTML."""
    # Cookies may be for secure contexts, which for browsers this machine is.
    jar = CookieJar(DefaultCookiePolicy(secure_protocols=("https", "http")))
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    answer = browser.open(url, timeout=ANSWER_S)
    for _ in range(8):
        with answer:
            page, here = answer.read().decode(), answer.geturl()
        form = re.search(r'<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>', page, re.DOTALL)
        if form is None:
            return str(page)
        fields = urlencode(fill_in(form[2])).encode()
        answer = browser.open(urljoin(here, unescape(form[1])), fields, timeout=ANSWER_S)
    raise AssertionError(f"the pages do not end: {page}")
