"""One module for each capability, composing state changes into the protocols of docs/design."""
