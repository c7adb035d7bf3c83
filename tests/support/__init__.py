"""What several folders of tests share: a catalog fixture, a fake runtime and clock, builders of stored state."""
