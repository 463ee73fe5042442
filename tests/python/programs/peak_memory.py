"""Runs a program, and writes the most memory that was resident, in KiB, to a file.

    peak_memory.py FILE PROGRAM [ARGUMENT ...]

The system counts for a process what its parent had when it was started, and tests are large: this
program is small. It exits as PROGRAM does.
"""

import os
import sys

path, *command = sys.argv[1:]
process = os.fork()
if process == 0:
    os.execv(command[0], command)
_, status, usage = os.wait4(process, 0)
with open(path, "w", encoding="ascii") as file:
    file.write(str(usage.ru_maxrss))
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
