"""Answers in Python that run in another process, such as the grader's sandbox, and what they raise there."""

from collections.abc import Callable
from typing import Any


class Elsewhere:
    """A function that runs in another process: calling it has `call` do so.

    `call` returns also the name of a function of labkit that the last call has used, or an empty text; after
    a call it is `borrowed`. `heard` counts the values that have come back.
    """

    def __init__(self, name: str, call: Callable[..., tuple[Any, str]]) -> None:
        self.__name__, self._call, self.borrowed, self.heard = name, call, "", 0

    def __call__(self, *args: Any) -> Any:
        """Have the other process call the function. Raises Raised for what it raises there."""
        returned, self.borrowed = self._call(*args)
        self.heard += 1
        return returned


class Raised(Exception):
    """What a function has raised in another process, if it is no SimtError: `kind` is its class's name.

    `answer_line` is that of the cell, or None where the function's own lines have no part in it.
    """

    def __init__(self, kind: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.answer_line = kind, line
