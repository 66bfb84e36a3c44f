"""Makes standard input the terminal of this session, then becomes the program that its arguments name."""

import fcntl
import os
import signal
import sys
import termios

# One that was started in the background, or by nohup, ignores some of them, and hands that on.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
    signal.signal(number, signal.SIG_DFL)

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
