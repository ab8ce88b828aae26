"""The cell magic `%%answer`: run a cell of Python, and keep its function as the answer to an exercise.

%%answer 09.6                       keeps the Python function below as the answer to exercise 09.6
%%answer 09.6 --function=wrong_tiles    the grader's line: its sandbox knows no exercises
"""

import re

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from labkit import magic

_LINE = re.compile(rf"(?P<exercise>{magic.EXERCISE_ID.pattern})( --function=(?P<function>\w+))?")


@magics_class
class AnswerMagics(Magics):
    """What `%load_ext labkit` adds for exercises in Python."""

    @cell_magic
    def answer(self, line: str, cell: str) -> None:
        """Run the cell as Python; the function that the exercise `line` asks for is the answer to it.

        Where none has its name, the last one is the answer.
        """
        read = _LINE.fullmatch(line.strip())
        if read is None:
            raise UsageError(f"%%answer {line}: that is not the id of an exercise, such as 09.6.")
        assert self.shell is not None
        code = "\n" + cell  # an empty line in place of the magic's line
        exercise = read["exercise"]
        wanted = read["function"] or _function_of(exercise)
        __tracebackhide__ = True  # show only the student's lines of an error
        with magic.noted(exercise) as about:
            magic.parsed(code)
            file = self.shell.compile.cache(code, self.shell.execution_count)
            about |= {"python": code, "file": file}
            magic.answers[exercise] = magic.run_python(code, file, self.shell.user_ns, wanted)


def _function_of(exercise: str) -> str:
    """Return the name of the function that an exercise asks for; "" if it is the last of the cell."""
    try:
        from labkit.course import EXERCISES  # here: it takes a while to load
    except ImportError:  # the grader's sandbox has an empty folder in its place
        return ""
    return EXERCISES[exercise].function if exercise in EXERCISES else ""
