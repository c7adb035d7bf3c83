"""Table and view metadata over plain JSON values, as pure functions. It imports no other package of this project."""
