"""The configuration of the catalog: its environment variables, and the parsers of their values and of options."""
