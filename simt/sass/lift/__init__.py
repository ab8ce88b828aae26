"""Write each instruction of machine code as PTX, which the simulator runs.

`table` has the writer and the table of rules; the other modules fill it, one rule per family of opcodes.
"""

from simt.sass.lift import control, floats, integers, memory
from simt.sass.lift.table import RULES, Lift

__all__ = ["RULES", "Lift", "control", "floats", "integers", "memory"]
