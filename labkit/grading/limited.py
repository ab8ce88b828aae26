"""Set limits of the system and become another program: python limited.py FILE_BYTES PROGRAM [ARGUMENT]...

It runs before every sandbox, and imports nothing of labkit.
"""

import os
import resource
import sys

file_bytes, *command = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_bytes), int(file_bytes)))
os.execvp(command[0], command)
