"""A student's source as a page shows it: coloured, numbered as messages number it, with some lines marked."""

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from itertools import chain

import pygments
from markupsafe import Markup
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Text

from grader.text import block

LINES, COLUMNS = 300, 200  # of a source that are shown
KEPT = 4_000  # characters of those that are not coloured anew: many hand in the cell as it was
COLOURED = 12_000  # characters; in longer ones a lexer can get slow
_LEXERS = {"cuda": "cuda", "c": "c", "answer": "python", "program": "cuda"}
# How messages name a line: in words, or by its number before the line itself.
_NAMED = re.compile(r"\blines? (\d{1,4})(?: and (\d{1,4}))?\b|^ *(\d{1,4}) \| ", re.MULTILINE)


def listing(source: str, magic: str, marked: Collection[int] = ()) -> tuple[Markup, str]:
    """Return the HTML of a source, and a sentence about what is left out of it.

    Its first line, that of the magic, is line 1. `marked` are the numbers of lines that stand out.
    """
    text, left_out = block(source.rstrip(), LINES, COLUMNS)
    coloured = _kept if len(text) <= KEPT else _html
    return coloured(text, magic, frozenset(marked)), left_out


def named_lines(failure: str) -> set[int]:
    """Return the lines of the source that a message names."""
    return {int(number) for found in _NAMED.finditer(failure) for number in found.groups() if number}


def _html(text: str, magic: str, marked: frozenset[int]) -> Markup:
    formatter = HtmlFormatter(cssclass="highlight", linenos="inline", hl_lines=sorted(marked))
    return Markup(pygments.format(_tokens(text, magic), formatter))


_kept = lru_cache(256)(_html)


def _tokens(text: str, magic: str) -> Iterator[tuple[object, str]]:
    """Return Pygments' tokens; the magic line is in another language than the rest."""
    first, end, rest = text.partition("\n")
    if not first.startswith("%%"):
        first, end, rest = "", "", text
    lexer = _lexer(_LEXERS.get(magic, "text"))
    below = lexer.get_tokens(rest) if len(rest) <= COLOURED else [(Text, rest)]
    return chain([(Comment.Preproc, first + end)], below)


@cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)
