"""Answers in Python that run in another process, such as the grader's sandbox, and what they raise there."""

from collections.abc import Callable
from typing import Any


class Elsewhere:
    """A function that runs in another process: calling it has `call` do so.

    `borrowed` is a name in its code that stands for a part of labkit, or empty, as `borrowed_name` has it.
    """

    def __init__(self, name: str, call: Callable[..., Any], borrowed: str) -> None:
        self.__name__, self._call, self.borrowed = name, call, borrowed

    def __call__(self, *args: Any) -> Any:
        """Have the other process call the function. Raises Raised for what it raises there."""
        return self._call(*args)


class Raised(Exception):
    """What a function has raised in another process, if it is no SimtError: `kind` is its class's name.

    `answer_line` is that of the cell, or None where the function's own lines have no part in it.
    """

    def __init__(self, kind: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.answer_line = kind, line
