r"""TeX formulas, as far as the notebooks use them, in MathML, which browsers draw without a script or a font.

Letters, numbers and signs; groups, _ and ^; \frac, \sqrt, \text, \texttt, \left and \right; and the names in
the tables below. Raises ValueError for anything else, with its name.
"""

import re
from collections.abc import Iterator
from html import escape

_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_VERBATIM = re.compile(r"\\(text|texttt|mathrm|mathtt|operatorname) *\{([^{}]*)\}")

_LETTERS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε"},
    **{"lambda": "λ", "mu": "μ", "pi": "π", "sigma": "σ", "theta": "θ", "omega": "ω"},
    **{"Delta": "Δ", "Theta": "Θ", "Omega": "Ω", "infty": "∞"},
}
_SIGNS = {
    **{"cdot": "·", "times": "×", "div": "÷", "pm": "±", "oplus": "⊕", "bmod": "mod"},
    **{"le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "ll": "≪", "gg": "≫"},
    **{"approx": "≈", "equiv": "≡", "sim": "∼", "propto": "∝", "in": "∈"},
    **{"leftarrow": "←", "rightarrow": "→", "to": "→", "Rightarrow": "⇒", "mapsto": "↦"},
    **{"ldots": "…", "dots": "…", "cdots": "⋯", "mid": "|", "wedge": "∧", "vee": "∨"},
    **{"%": "%", "_": "_", "#": "#", "&": "&", "$": "$", "{": "{", "}": "}"},
}
_FENCES = {"lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "lvert": "|", "rvert": "|"}
_NAMES = ("min", "max", "log", "ln", "exp", "gcd")
_LARGE = {"sum": "∑", "prod": "∏"}  # their limits stand below and above
_SPACES = {",": 0.17, ":": 0.22, ";": 0.28, " ": 0.25, "quad": 1.0, "qquad": 2.0}


def mathml(tex: str, block: bool = False) -> str:
    "A <math> element for a formula; `block` for one on a line of its own."
    return f'<math display="{"block" if block else "inline"}">{_row(_Tokens(tex), until=None)}</math>'


class _Tokens:
    "What is left of a formula. Text in braces after \\text and the like is one token."

    def __init__(self, tex: str) -> None:
        self.tex = tex.strip()
        self.left = list(self._split(self.tex))

    def _split(self, tex: str) -> Iterator[str]:
        place = 0
        while place < len(tex):
            found = _VERBATIM.match(tex, place) or _TOKEN.match(tex, place)
            assert found
            place = found.end()
            if not found[0].isspace():
                yield found[0]

    def next(self) -> str:
        if not self.left:
            raise ValueError(f"{self.tex!r} ends where something is missing")
        return self.left.pop(0)

    def skip(self, token: str) -> bool:
        "Take the next token if it is this one."
        if self.left and self.left[0] == token:
            self.left.pop(0)
            return True
        return False


def _row(tokens: _Tokens, until: str | None) -> str:
    "All up to the token `until`, which is taken too, or to the end."
    parts = []
    while tokens.left or until:
        if until and tokens.skip(until):
            break
        parts.append(_with_scripts(tokens))
    return f"<mrow>{''.join(parts)}</mrow>"


def _with_scripts(tokens: _Tokens) -> str:
    large = bool(tokens.left) and tokens.left[0].removeprefix("\\") in _LARGE
    bare = bool(tokens.left) and tokens.left[0] in ("_", "^")  # as in `BLOCK`$^2$
    base, scripts = "<mrow></mrow>" if bare else _element(tokens), {}
    while tokens.left and tokens.left[0] in ("_", "^"):
        mark = tokens.next()
        scripts[mark] = _element(tokens)
    if not scripts:
        return base
    kind = ("under", "over") if large else ("sub", "sup")
    name = "m" + "".join(each for mark, each in zip("_^", kind, strict=True) if mark in scripts)
    return f"<{name}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</{name}>"


def _element(tokens: _Tokens) -> str:
    token = tokens.next()
    name = token[1:] if token.startswith("\\") else ""
    verbatim = _VERBATIM.fullmatch(token)
    if verbatim:
        style = ' style="font-family: monospace"' if verbatim[1].endswith("tt") else ""
        return f"<mtext{style}>{escape(verbatim[2])}</mtext>"
    if token == "{":
        return _row(tokens, until="}")
    if name in ("frac", "dfrac"):
        style = ' displaystyle="true"' if name == "dfrac" else ""
        return f"<mfrac{style}>{_element(tokens)}{_element(tokens)}</mfrac>"
    if name == "sqrt":
        return f"<msqrt>{_element(tokens)}</msqrt>"
    if name in ("left", "right"):
        fence = tokens.next()
        return f'<mo stretchy="true">{escape(_FENCES.get(fence[1:], fence).replace(".", ""))}</mo>'
    return _atom(token, name)


def _atom(token: str, name: str) -> str:
    "A letter, number, sign or space."
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if name in _LETTERS or (not name and token.isalpha()):
        return f"<mi>{_LETTERS.get(name, token)}</mi>"
    if name in _NAMES:
        return f"<mi>{name}</mi>"
    if name in _LARGE:
        return f"<mo>{_LARGE[name]}</mo>"
    if name in _SPACES:
        return f'<mspace width="{_SPACES[name]}em"></mspace>'
    if name in _FENCES or (not name and token in "()[]|"):
        return f'<mo stretchy="false">{_FENCES.get(name, token)}</mo>'
    if name in _SIGNS or (not name and token in "+-*/=<>,.:;!'&%⋅·×…"):
        return f"<mo>{escape(_SIGNS.get(name, token).replace('-', '−'))}</mo>"
    raise ValueError(f"no MathML for {token!r}")
