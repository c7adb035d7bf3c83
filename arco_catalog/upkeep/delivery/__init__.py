"""Sends the events of a catalog to the receivers that subscribed to them (docs/design/delivery.md)."""
