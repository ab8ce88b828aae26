"""Where answers run: a process or a container that reads and writes nothing outside."""
