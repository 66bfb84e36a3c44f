"""Asks for a key and for a line, of whatever keyboard there is."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from progress.stage import keyboard_of_this_process


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if "background" in sys.argv:
    if child := os.fork():  # who leads a session is always in the foreground
        os.waitpid(child, 0)
        sys.exit()
    os.setpgid(0, 0)

keyboard = keyboard_of_this_process()
if keyboard is None:
    say("no keyboard")
    sys.exit()
taken = keyboard.take()
say(f"taken: {taken}")
if not taken:
    keyboard.close()
    sys.exit()
say("key?")
while (key := keyboard.key()) is None:
    time.sleep(0.01)
say(repr(key))
if "crash" in sys.argv:
    raise ValueError("crashed")
assert keyboard.take(lines=True)
say("line?")
while (line := keyboard.line()) is None:
    time.sleep(0.01)
say(repr(line))
keyboard.close()
