"""No deadline for an example: this room's tests share a machine with others', and time is none of their laws."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
