"""Planning: functions that compute, from what was read, the request and the attempt, whether a request is allowed and
what it would change, and what collections and purges may delete. They do no I/O."""
