"""A notebook that has run, as an HTML page: one file, which needs no network and no kernel.

Pictures lie in the page and formulas are MathML. A widget needs a kernel to answer it: in the place of an
explorer stand its pictures, its text and the values of its controls; in that of another widget its text.
"""

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from latex2mathml.converter import convert
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from traitlets.config import Config

from labkit.course.notebooks.release import solution

WIDGET, SVG = "application/vnd.jupyter.widget-view+json", "image/svg+xml"
CONTROLS_STAND = "The controls move when the notebook runs in Jupyter. Here they stood at"
EXPLORER_STYLE = Path(__file__).parents[2] / "widgets" / "page" / "explorer.css"

_OTHERS = re.compile(r'href="([\w.-]+)\.ipynb"')  # links to other notebooks become links to their pages

# Attributes that the page of an explorer acts on (labkit/figures/svg.py).
_SETS = re.compile(r' data-(?:set|key|x|y|cols|rows|hover)="[^"]*"')
_ELEMENT = re.compile(r"<\w[^<>]* tabindex=[^<>]*>")
_ROLE, _TABINDEX = re.compile(' role="(?:button|application)"'), re.compile(' tabindex="[^"]*"')

Widgets = Mapping[str, Mapping[str, Any]]  # model id -> state, as the kernel sent it

# nbconvert's page without what it would fetch: require.js, MathJax, Mermaid and the manager of widgets.
_TEMPLATE = """{% extends 'index.html.j2' %}
{% block html_head_js %}{% endblock %}
{% block jupyter_widgets %}{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}
{% block html_head_css %}<style>
main { max-width: 1080px; margin: 0 auto; }
.jp-RenderedHTMLCommon math[display="block"] { margin: 1em 0; }
.jp-RenderedHTML pre { font-family: var(--jp-code-font-family); font-size: var(--jp-code-font-size); }
.labkit-controls { color: var(--jp-ui-font-color2); margin-bottom: 0.5em; }
.labkit-controls span { white-space: nowrap; margin-left: 1em; }
.labkit-controls b { color: var(--jp-content-font-color1); }
{explorer}</style>{% endblock %}
"""


def page(notebook: NotebookNode, widgets: Widgets, path: Path) -> str:
    """Make the HTML of a notebook that has run; images of its text lie beside its file `path`."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = solution(cell.source)
            cell.outputs = [output for output in cell.outputs if _without_widget(output, widgets)]
            for data in (output.data for output in cell.outputs if "text/html" in output.get("data", {})):
                data["text/html"] = _OTHERS.sub(r'href="\1.html"', data["text/html"])
    notebook.metadata.pop("widgets", None)
    # A cell of %%cuda or %%c is coloured as what it holds, where the others are IPython.
    notebook.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    config = Config(HighlightMagicsPreprocessor={"languages": {"%%cuda": "cuda", "%%c": "c"}})
    style = EXPLORER_STYLE.read_text(encoding="utf-8")
    exporter = _Exporter(
        raw_template=_TEMPLATE.replace("{explorer}", style), embed_images=True, config=config
    )
    resources = {"metadata": {"name": path.stem, "path": str(path.parent)}}
    text, _ = exporter.from_notebook_node(notebook, resources)
    return text


class _Exporter(HTMLExporter):
    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        """Convert as HTMLExporter does, with formulas in MathML and links to the pages of other notebooks."""
        return markdown(
            source,
            embed_images=self.embed_images,
            path=context["resources"]["metadata"]["path"],
            attachments=context.get("cell", {}).get("attachments", {}),
        )


def markdown(source: str, **settings: Any) -> str:
    """Make HTML of Markdown; HTML in it stays as it is. `settings` are those of IPythonRenderer."""
    renderer = _Renderer(escape=False, exclude_anchor_links=True, **settings)
    return str(MarkdownWithMath(renderer=renderer).render(source))


def mathml(tex: str, display: str) -> str:
    """Write the formula as browsers draw it without a script; return nothing where that fails."""
    try:
        found = str(convert(tex, display=display))
    except Exception:  # its errors have no class in common
        return ""
    return "" if "\\" in found else found  # a command that it does not know stays one


class _Renderer(IPythonRenderer):
    def inline_math(self, body: str) -> str:
        return mathml(body, "inline") or super().inline_math(body)

    def block_math(self, body: str) -> str:
        return mathml(body, "block") or super().block_math(body)

    # HTML as it stands: looking for images in it, IPythonRenderer closes a <details> at its first blank line.
    def block_html(self, html: str) -> str:
        return html

    def inline_html(self, html: str) -> str:
        return html

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if ":" not in url and url.endswith(".ipynb"):
            url = f"{url.removesuffix('.ipynb')}.html"
        return super().link(text, url, title)


def _without_widget(output: NotebookNode, widgets: Widgets) -> bool:
    """Put what a widget shows in its place; False where it shows nothing, such as a finished progress bar."""
    data = output.get("data", {})
    view = data.pop(WIDGET, None)
    if SVG in data:  # as an image it would have neither alt text nor the page's colours
        data["text/html"] = _scrolling(data[SVG])
    if view is None or view["model_id"] not in widgets:
        return True
    model = widgets[view["model_id"]]
    layout = widgets.get((model.get("layout") or "").removeprefix("IPY_MODEL_"), {})
    if layout.get("visibility") == "hidden" or layout.get("display") == "none":
        return False
    if "shown" in model:
        output.data["text/html"] = _explorer(model["shown"])
    return True


def still(picture: str) -> str:
    """Return an SVG picture without what only a kernel can answer: buttons and grids that set controls."""
    return _ELEMENT.sub(_still, _SETS.sub("", picture))


def _still(element: re.Match[str]) -> str:
    """Make an image of a button or a grid. The Tab key still reaches it if it says something."""
    tag = _ROLE.sub(' role="img"', element[0])
    return tag if " data-tip=" in tag else _TABINDEX.sub("", tag)


def _scrolling(picture: str) -> str:
    return f'<div class="lk-scroll">{still(picture)}</div>'


def _explorer(shown: Mapping[str, Any]) -> str:
    """Make HTML of what an explorer showed."""
    values = " ".join(
        f"<span>{escape(each['label'])} <b>{escape(each['labels'][each['position']])}</b></span>"
        for each in shown["controls"]
    )
    pictures = "".join(map(_scrolling, shown["pictures"]))
    found = escape(shown.get("error") or shown["conclusion"])
    return (
        f'<section class="lk"><div class="lk-pictures">{pictures}</div><div class="lk-side">'
        f'<p class="lk-conclusion">{found}</p><div>{shown["details"]}</div>'
        f'<div class="labkit-controls">{CONTROLS_STAND} {values}</div></div></section>'
    )
