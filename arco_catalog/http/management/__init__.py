"""Handlers of the management API of Apache Polaris: who there is in a realm, and what they may do."""
