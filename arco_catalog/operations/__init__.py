"""One module for each capability, composing state changes into the protocols of design.md, section 6."""
