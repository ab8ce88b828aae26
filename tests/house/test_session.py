"""No test finds what another has left in labkit's memory."""

import ast
from pathlib import Path

import session

from labkit import magic
from labkit.paths import PACKAGES
from simt.common import launches

CHANGES = {"append", "add", "update", "setdefault", "pop", "popitem", "clear", "extend", "insert", "remove"}


def changed(path: Path) -> set[str]:
    """Find the module's names that its functions bind anew or change in place, `sys.modules` aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        local = {arg.arg for arg in ast.walk(function) if isinstance(arg, ast.arg)}
        local |= {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        rebound = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
        found |= rebound & own
        for node in ast.walk(function):
            place = None
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CHANGES
            ):
                place = node.func.value
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                place = node.value
            if isinstance(place, ast.Name) and place.id in own - (local - rebound):
                found.add(place.id)
    return found


def test_all_that_labkit_remembers_is_known():
    found = set()
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            found |= {(module.removesuffix(".__init__"), name) for name in changed(path)}
    assert len(found) > len(session.REMEMBERED)
    known = {*session.REMEMBERED, *session.KEPT}
    assert sorted(found - known) == [], "say in tests/session.py whether a test forgets it"
    assert sorted(known - found) == [], "labkit has no such memory any more"


def test_a_test_begins_without_memory_and_leaves_it_as_it_was():
    kept = magic.answers
    magic.answers["99.1"], launches._seen = "an answer", launches.LaunchLog()
    with session.without_memory():
        assert not magic.answers and launches._seen is None
        magic.answers["99.2"] = "another"
    assert magic.answers is kept and magic.answers == {"99.1": "an answer"} and launches._seen is not None
