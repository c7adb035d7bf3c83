"""How the project writes, measured: its words against those of libraries that the field reads with ease."""
