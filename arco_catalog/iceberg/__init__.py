"""Table and view metadata semantics over plain JSON values. Pure functions; imports nothing of ours."""
