"""The sequencer of the event feed (docs/design/events.md)."""
