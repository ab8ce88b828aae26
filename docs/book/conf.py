"""What Sphinx needs to know of the book. `build.py` beside this file makes the pages, and calls Sphinx."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from labkit.course.notebooks.page import EXPLORER_STYLE, mathml  # noqa: E402

project = "labkit"
author = "labkit's authors"
html_title = "CUDA matrix kernels"
language = "en"

extensions = ["myst_nb", "sphinx.ext.githubpages"]
nb_execution_mode = "off"  # the outputs are those that the notebooks were stored with
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4  # links to headings work as on GitHub
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"text": "CUDA matrix kernels"},
    "show_toc_level": 2,
    "show_nav_level": 2,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "article_header_start": ["breadcrumbs"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copyright = "labkit's authors, MIT licence"
html_sidebars = {"index": []}
html_static_path = [str(HERE / "static"), str(EXPLORER_STYLE)]
html_css_files = ["explorer.css", "book.css"]
html_js_files = [("pictures.js", {"defer": "defer"})]
exclude_patterns = ["_files"]
html_copy_source = False
html_show_sphinx = False

_ANCHOR = re.compile(r'<a id="([^"]+)">')
_MAGIC = re.compile(r"\s*%%(cuda|c|answer|program)\b")


def _copy_files(app: Sphinx, config: Config) -> None:
    """Name the folder that is copied as it is. It lies in the source, not beside this file."""
    config.html_extra_path = [str(app.srcdir / "_files")]


def _anchors(app: Sphinx, document: nodes.document) -> None:
    """Let links lead to anchors written in HTML, too, as on GitHub. MyST knows those of headings."""
    known = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for raw in document.findall(nodes.raw):
        for name in _ANCHOR.findall(raw.astext()):
            known[name] = (0, name, name)


def _colour(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Colour cells below a magic line as what they hold, and number their lines, which messages name."""
    for block in document.findall(nodes.literal_block):
        if found := _MAGIC.match(block.astext()):
            block["language"] = {"answer": "python", "program": "cuda"}.get(found[1], found[1])
            block["linenos"] = block["force"] = True  # by force: the magic line is neither Python nor C


def _formula(self: HTML5Translator, node: nodes.Element, display: str) -> None:
    """Write a formula as browsers set it without a script."""
    tex = node.astext()
    html = mathml(tex, display)
    if not html:
        raise ValueError(f"{self.builder.current_docname}: latex2mathml cannot write the formula {tex}")
    self.body.append(html if display == "inline" else f'<div class="book-formula">{html}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add formulas without a script, and the colours of CUDA."""
    app.connect("config-inited", _copy_files)
    app.connect("doctree-read", _anchors)
    app.connect("doctree-resolved", _colour)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: _formula(self, node, "inline"), None),
        block_renderers=(lambda self, node: _formula(self, node, "block"), None),
    )
