"""A disturbance for docs/tutorial-application.md: 300 µs of work, a hundred times a second."""

import pathlib
import time

pathlib.Path("/proc/self/comm").write_text("backup")
due = time.monotonic()
while True:
    due += 0.01
    time.sleep(max(0.0, due - time.monotonic()))
    end = time.monotonic() + 0.0003
    while time.monotonic() < end:
        pass
