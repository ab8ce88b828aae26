"""The templates beside this file, which escape all that is put into them."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from grader.intake.labs import number
from grader.text import one_line

_LIGHT, _DARK = (
    "xcode",
    "github-dark",
)  # of pygments' styles those of the best contrast (WCAG 2 wants 4.5 to 1)


def render(template: str, **values: object) -> str:
    """Return the page that a template makes of the values."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"points": number, "line": one_line, "share": _share}
    made.globals["colours"] = Markup(_colours(_LIGHT))
    made.globals["dark_colours"] = Markup(_colours(_DARK))
    return made


def _share(part: float) -> str:
    """Write a part of one in per cent, without a place for a line break."""
    return f"{100 * part:.0f}\N{NO-BREAK SPACE}%"


def _colours(style: str) -> str:
    """Return the CSS rules for the parts of a source."""
    return str(HtmlFormatter(style=style).get_style_defs(".highlight"))
