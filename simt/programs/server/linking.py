"""Link the PTX of several files into one module: those of a program built with `nvcc -rdc=true`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simt.common.errors import SimtError

_COMMENT = re.compile(r"//[^\n]*")
_LINE = re.compile(r"\s*\.(version|target|address_size|file)\b([^\n]*)")
_FUNCTION = re.compile(r"\.(?:func|entry)\s*(?:\([^)]*\)\s*)?([\w$]+)")
_VARIABLE = re.compile(r"([\w$]+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")
_LABEL = re.compile(r"^\s*(\$L\w+):", re.M)
_FILE_NUMBER = re.compile(r"(\.loc\s+|\binlined_at\s+|^\s*\.file\s+)(\d+)", re.M)


@dataclass(frozen=True)
class _Item:
    """A declaration or definition in a module; `linkage` is extern, visible, weak, common or ""."""

    name: str
    linkage: str
    text: str
    head: str  # of a function, without its body; "" for a variable and a section
    is_definition: bool


def linked(texts: Sequence[str]) -> str:
    """Return one module made of several. Raises SimtError for a name that two of them define."""
    if len(texts) == 1:
        return texts[0]
    texts = _with_own_names([_COMMENT.sub("", text) for text in texts])
    heads: dict[str, str] = {}
    files: list[str] = []
    externs: dict[str, _Item] = {}
    defined: dict[str, _Item] = {}
    sections: list[str] = []
    for text in texts:
        for item in _items(text):
            if isinstance(item, re.Match):
                if item[1] == "file":
                    files.append(item[0].strip())
                else:
                    heads[item[1]] = max(heads.get(item[1], ""), item[0].strip(), key=_newness)
            elif not item.name:
                sections.append(item.text)
            elif item.linkage == "extern" or not item.is_definition:
                externs.setdefault(item.name, item)
            else:
                defined[item.name] = _chosen(defined.get(item.name), item)
    functions = [item for item in defined.values() if item.head]
    lines = [heads[name] for name in ("version", "target", "address_size") if name in heads]
    lines += [item.text for item in externs.values() if item.name not in defined]
    lines += [f"{item.head};" for item in functions if ".entry" not in item.head]
    lines += [item.text for item in defined.values() if not item.head]
    lines += [item.text for item in functions]
    return "\n".join([*lines, *files, *sections]) + "\n"


def _newness(line: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", line))


def _chosen(earlier: _Item | None, item: _Item) -> _Item:
    """Return the definition that counts: one that is not weak, else the first."""
    if earlier is None or earlier.linkage in ("weak", "common"):
        return item if earlier is None or item.linkage not in ("weak", "common") else earlier
    if item.linkage in ("weak", "common"):
        return earlier
    raise SimtError(f"two files of the program define `{item.name}` on the device: make one of them `extern`")


def _with_own_names(texts: Sequence[str]) -> list[str]:
    """Renumber source files, and rename what is local to a text and has a namesake in another."""
    names: list[set[str]] = []
    local: list[set[str]] = []
    for text in texts:
        items = [item for item in _items(text) if isinstance(item, _Item)]
        labels = {label for item in items if not item.name for label in _LABEL.findall(item.text)}
        names.append({item.name for item in items} | labels)
        local.append({item.name for item in items if not item.linkage and ".entry" not in item.head} | labels)
    renamed, first = [], 0
    for number, text in enumerate(texts):
        others = set().union(*names[:number], *names[number + 1 :])
        for name in (local[number] & others) - {""}:
            text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{name}$file{number}", text)
        renamed.append(_FILE_NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + first}", text))  # noqa: B023
        first += max((int(found[2]) for found in _FILE_NUMBER.finditer(text)), default=0)
    return renamed


def _items(text: str) -> Iterator[_Item | re.Match[str]]:
    """Yield what stands at the top of a module: lines such as `.file`, and declarations."""
    at = 0
    while (at := _skip_space(text, at)) < len(text):
        if line := _LINE.match(text, at):
            yield line
            at = line.end()
            continue
        semicolon, brace = _find(text, ";", at), _find(text, "{", at)
        has_body = brace < semicolon and "=" not in text[at:brace]
        end = _closing(text, brace) if has_body else semicolon
        head = text[at : brace if has_body else semicolon].strip()
        whole = text[at : end + 1]
        at = end + 1
        linkage = re.match(r"\.(extern|visible|weak|common)\b", head)
        function = _FUNCTION.search(head)
        name = function or _VARIABLE.search(head.split("=")[0].strip())
        is_section = head.startswith((".section", "@@"))
        yield _Item(
            "" if is_section or not name else name[1],
            linkage[1] if linkage else "",
            whole,
            head if function else "",
            has_body or not function,
        )


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _find(text: str, sought: str, at: int) -> int:
    found = text.find(sought, at)
    return found if found >= 0 else len(text)


def _closing(text: str, brace: int) -> int:
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, brace):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    return len(text)
