"""The console, pages for people that show a catalog in a browser, as static files below `/ui`. The pages read through
the public APIs alone, with the token of their user (docs/console.md)."""
