"""What developers run besides the tests: never imported by what ships."""
