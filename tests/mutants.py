"""How many small mistakes in the code the tests notice: the mutation score of the modules that must not err.

    python tests/mutants.py                                    # or: make mutants
    python tests/mutants.py --module sanitizer --seed 7 --count 40
    python tests/mutants.py --module occupancy --list          # the drawn mutants; nothing runs

A mutant is the code with one operator, number, condition or loop changed. cosmic-ray makes them: its
operators are plain functions of a source, whereas mutmut 3 brings a runner of its own, which puts all
mutants into one process and knows nothing of labkit's cache. The seed draws places in a module, and one
change for each place. A mutant is killed when a test fails or runs for too long. All others survive.

All runs in copies of the repository, in a temporary folder. First the tests run once, to learn which test
covers which line. They run once more in another order, as mutants get them. Both times they must pass, or
there is no score. What a file of tests covers is kept in build/mutants until that file or the code changes.
Then each mutant gets the tests that run its line, the fastest first, and after these those that share a
fixture with them, as one test may compile what another runs. A line that runs before the tests, as tables
do, gets all tests that run any line of the file. Each run has a new LABKIT_CACHE: the cache knows sources
by time and size alone, so a mutant could get the code of another.

tests/mutants_equivalent.toml lists the mutants that change nothing, each with the reason.
"""

import ast
import difflib
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import Annotated, Any, ClassVar, TypeVar

import coverage
import typer
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "mutants"
EQUIVALENT = ROOT / "tests" / "mutants_equivalent.toml"
START_SECONDS = 120  # for pytest to start, on a busy machine
TEST_SECONDS = 30  # for a test, and PATIENCE times as long as it takes without a mutant
PATIENCE = 10
PYTEST = (
    *("-q", "--disable-plugin-autoload", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"),
    *("-p", "mutants_plugin", "-p", "no:cacheprovider", "-p", "no:faulthandler"),
)
NO_TESTS = 5  # the exit code of pytest
DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

# Left out: what needs names to be given, and `is` in the place of `==`, which is the same for small numbers.
_LEFT_OUT = re.compile(
    r"Variable|Operator_(?!IsNot_Is$|Is_IsNot$)(Is|IsNot)_|_(?<!IsNot_)(?<!Is_)(Is|IsNot)$"
)
OPERATORS: dict[str, Operator] = {
    name: plugins.get_operator(name)() for name in plugins.operator_names() if not _LEFT_OUT.search(name)
}
_NO_RESULT = {
    "cache",
    "lru_cache",
    "dataclass",
}  # decorators that change the speed or the face, and no result


@dataclass(frozen=True)
class Module:
    """Files whose mistakes would be silent, and the tests that should see them: folders, files, patterns."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


_JUDGING = tuple(f"grader/judging/{name}.py" for name in ("engine", "faults", "judge"))
_COURSE = tuple(
    f"tests/labkit/course/test_{name}*.py" for name in ("c", "h", "magic", "p", "unnamed")
)  # no notebooks
MODULES = {
    "instructions": Module(("simt/code/instructions",), ("tests/simt",)),
    "lowering": Module(("simt/lowering",), ("tests/simt",)),
    "counters": Module(("simt/counters",), ("tests/simt", "tests/labkit/model")),
    "sanitizer": Module(("simt/sanitizer", "simt/findings.py"), ("tests/simt",)),
    "occupancy": Module(
        ("simt/common/occupancy.py",), ("tests/simt/common", "tests/labkit/widgets/test_occupancy_view.py")
    ),
    "criteria": Module(("labkit/course/criteria",), _COURSE),
    "grading": Module(("grader/results", *_JUDGING), ("tests/grader",)),
}
# Where it is the same whether numbers have a sign, or whether NaN are ordered.
_SAME = {("icmp_", '"=="'), ("icmp_", '"!="'), ("fcmp_", '"uno"'), ("fcmp_", '"ord"')}


class OtherInstruction(Operator):
    """Puts another instruction of LLVM, or another comparison, in the place of one that builder `b` makes.

    Most of what an instruction means is there, in names and in text, which cosmic-ray leaves alone.
    """

    names: ClassVar = [
        *(
            ("and_", "or_"),
            ("add", "sub"),
            ("fadd", "fsub"),
            ("sext", "zext"),
            ("ashr", "lshr"),
            ("shl", "lshr"),
        ),
        *(("sdiv", "udiv"), ("srem", "urem"), ("sitofp", "uitofp"), ("fptosi", "fptoui")),
        *(("icmp_signed", "icmp_unsigned"), ("fcmp_ordered", "fcmp_unordered")),
    ]
    texts: ClassVar = [('"<"', '"<="'), ('">"', '">="'), ('"=="', '"!="'), ('"ord"', '"uno"')]

    def mutation_positions(self, node: Any) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Find the names and texts that have another."""
        return [(node.start_pos, node.end_pos)] * len(self._others(node))

    def mutate(self, node: Any, index: int) -> Any:
        """Put another in the place of a name or a text."""
        node.value = self._others(node)[index]
        return node

    def _others(self, node: Any) -> list[str]:
        pairs = self.texts if node.type == "string" else []
        if node.type == "name" and node.parent.get_code(include_prefix=False) == f".{node.value}":
            before = node.parent.get_previous_leaf()
            first = node.get_next_leaf().get_next_leaf()  # the first argument, behind the bracket
            is_same = (node.value[:5], first.value) in _SAME
            is_of_builder = before is not None and before.value == "b"
            pairs = self.names if is_of_builder and not is_same else []
        return [other for pair in pairs if node.value in pair for other in pair if other != node.value]

    @classmethod
    def examples(cls) -> Iterable[Example]:
        """Return one change."""
        return (Example("b.add(x, y)", "b.sub(x, y)"),)


OPERATORS["labkit/OtherInstruction"] = OtherInstruction()


class CannotJudge(Exception):
    """There is no score: the tests fail without a mutant, or nothing says what they cover."""


@dataclass(frozen=True)
class Mutant:
    """One change of a file, such as simt/common/occupancy.py, at lines first to last (from 1)."""

    file: str
    first: int
    last: int
    operator: str
    code: str
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what names the mutant in the list of those that change nothing."""
        return self.file, self.before, self.after

    def __str__(self) -> str:
        return f"{self.file}:{self.first}\n    - {self.before}\n    + {self.after}"


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant: the test or the cause that killed it ("" if it survived); the tests for it."""

    mutant: Mutant
    killer: str
    tests: int
    seconds: float


# Mutants


def draw(name: str, count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """Return up to `count` mutants of a module, each at a place of its own; the same for the same seed."""
    chance = random.Random(f"{name} {seed}")
    places = [place for file in sources(MODULES[name], root) for place in _places(file, root)]
    chance.shuffle(places)
    drawn: list[Mutant] = []
    for file, first, last, changes in places:
        chance.shuffle(changes)
        made = (_mutant(file, first, last, *change, root=root) for change in changes)
        drawn += [mutant for mutant in made if mutant][:1]
        if len(drawn) == count:
            break
    return drawn


def sources(module: Module, root: Path = ROOT) -> list[str]:
    """Return the module's files, relative to the repository, in order."""
    paths = (root / each for each in module.sources)
    found = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    return sorted(file.relative_to(root).as_posix() for file in found)


def _places(file: str, root: Path) -> list[tuple[str, int, int, list[tuple[str, int]]]]:
    """Return the places that something can change: file, first and last line, and (operator, occurrence)."""
    text = (root / file).read_text()
    idle, found = list(_idle(text)), defaultdict(list)
    nodes = list(ast_nodes(get_ast(text)))
    for name, operator in OPERATORS.items():
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, place in enumerate(places):
            found[place].append((name, occurrence))
    return [
        (file, start[0], end[0], changes)
        for (start, end), changes in sorted(found.items())
        if not any(low <= start <= high for low, high in idle)
    ]


def _idle(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Find where annotations are, and decorators that change the speed or the face alone; both ends count."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        for decorator in getattr(node, "decorator_list", ()):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            parts += [decorator] if isinstance(called, ast.Name) and called.id in _NO_RESULT else []
        for part in filter(None, parts):
            start, end = (
                len(lines[line - 1].encode()[:column].decode())
                for line, column in ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))
            )
            yield (part.lineno, start - 1), (part.end_lineno, end)  # from a decorator's @


def _mutant(file: str, first: int, last: int, name: str, occurrence: int, root: Path) -> Mutant | None:
    """Return the mutant, or None where the change gives no Python or the same program."""
    text = (root / file).read_text()
    code = mutate_code(text, OPERATORS[name], occurrence)
    try:
        if code is None or ast.dump(ast.parse(code)) == ast.dump(ast.parse(text)):
            return None
    except (SyntaxError, ValueError):
        return None
    changed = list(difflib.ndiff(text.splitlines(), code.splitlines()))
    before, after = (
        " / ".join(line[2:].strip() for line in changed if line[0] == sign and line[2:].strip())
        for sign in "-+"
    )
    return Mutant(file, first, last, name.rpartition("/")[2], code, before, after)


def equivalent() -> dict[tuple[str, str, str], str]:
    """Return why each known mutant changes nothing, by file, original text and changed text."""
    rows = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


# Coverage, and the tests that a mutant gets


@dataclass(frozen=True)
class Covered:
    """What tests cover: by test its seconds, and the fixtures that it shares with others of its file; by file
    and line (from 1) the tests that run it, and "" where it runs before them.
    """

    seconds: dict[str, float]
    shared: dict[str, list[str]]
    lines: dict[str, dict[int, set[str]]]

    def tests_of(self, mutant: Mutant, root: Path = ROOT) -> list[str]:
        """Return the tests for a mutant: those that run its statement, the fastest first, then the others."""
        lines = self.lines.get(mutant.file, {})
        statement, at_import = _statement((root / mutant.file).read_text(), mutant.first)
        near = {test for line in statement for test in lines.get(line, ())}
        at_import |= "" in near
        near -= {""}
        shared = {fixture for test in near for fixture in self.shared[test]}
        others = {test for test, fixtures in self.shared.items() if not shared.isdisjoint(fixtures)}
        if at_import:
            others = {test for tests in lines.values() for test in tests if test}
        return [*self.fastest(near), *self.fastest(others - near)]

    def fastest(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds[test], test))


def _file(test: str) -> str:
    return test.partition("::")[0]


def _statement(text: str, line: int) -> tuple[range, bool]:
    """Return the lines of the innermost statement around a line, and whether importing the file runs it.

    Of a loop or a condition these are the lines of its head, of a function or a class all.
    """
    statements = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.stmt)]
    around = [each for each in statements if line in _lines(each)]
    inner = min(around, key=lambda each: len(_lines(each)))
    body = getattr(inner, "body", ())
    is_named = isinstance(inner, DEFINITION)
    lines = (
        _lines(inner) if not body or is_named else range(inner.lineno, max(body[0].lineno, inner.lineno + 1))
    )
    functions = (
        each for each in around if isinstance(each, DEFINITION) and not isinstance(each, ast.ClassDef)
    )
    return lines, not any(line >= _lines(each.body[0]).start for each in functions)


def _lines(node: ast.stmt) -> range:
    """Return the lines of a statement with its decorators."""
    first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
    return range(first, (node.end_lineno or node.lineno) + 1)


def covered(tests: str, copy: Path) -> Covered:
    """Return what a file of tests covers. Raises CannotJudge where one fails without a mutant."""
    kept = KEPT / tests.replace("/", "-") / _digest(tests)
    if not (kept / "covered.json").exists():
        shutil.rmtree(kept.parent, ignore_errors=True)
        kept.mkdir(parents=True)
        start = perf_counter()
        _passes(tests, _pytest(copy, [tests, f"--cover-into={kept}"], None), NO_TESTS)
        found = _read(kept, copy)
        _passes(tests, _try(copy, found.fastest(found.seconds), found.seconds))
        print(f"{tests}: {len(found.seconds)} tests, {perf_counter() - start:.0f} s", flush=True)
        lines = {file: {line: sorted(of) for line, of in each.items()} for file, each in found.lines.items()}
        (kept / "covered.json").write_text(json.dumps({**vars(found), "lines": lines}))
    read = json.loads((kept / "covered.json").read_text())
    known = {file: {int(line): set(of) for line, of in each.items()} for file, each in read["lines"].items()}
    return Covered(read["seconds"], read["shared"], known)


def _read(folder: Path, copy: Path) -> Covered:
    """Read what the plug-in wrote."""
    data = coverage.CoverageData(str(folder / "coverage"))
    data.read()
    lines = {
        Path(file).relative_to(copy).as_posix(): {
            line: set(tests) for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    return Covered(**json.loads((folder / "tests.json").read_text()), lines=lines)


def _passes(tests: str, outcome: "Outcome", *also: int) -> None:
    if outcome.code not in (0, *also):
        raise CannotJudge(f"{tests} fails without a mutant ({outcome.killer}):\n{outcome.text[-4000:]}")


def _together(parts: list[Covered]) -> Covered:
    """Return what several files of tests cover. Raises CannotJudge where there is none."""
    seconds = {test: time for part in parts for test, time in part.seconds.items()}
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    if not seconds:
        raise CannotJudge("There are no tests: nothing says what they cover.")
    for part in parts:
        for file, of in part.lines.items():
            for line, tests in of.items():
                lines[file][line] |= tests
    shared = {test: fixtures for part in parts for test, fixtures in part.shared.items()}
    return Covered(seconds, shared, lines)


# Runs


@dataclass(frozen=True)
class Outcome:
    """How a run of pytest ended: its exit code (None: it ran for too long), and what it printed."""

    code: int | None
    text: str

    @property
    def killer(self) -> str:
        """Return the test that failed, or what else ended the run; "" where all passed."""
        if self.code == 0:
            return ""
        failed = [line for line in self.text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if failed:
            return failed[-1].split(" ")[1]
        return "no end" if self.code is None or "Timeout (" in self.text else f"pytest's end {self.code}"


def copy_repository(to: Path) -> None:
    """Copy all files that git tracks or would track."""
    for name in _files():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


@cache
def _files() -> list[str]:
    call = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(call, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def _digest(tests: str) -> str:
    """Return a digest of what a file of tests depends on: all but pages, this program and other tests."""
    takes_others = re.search(
        r"^(from|import) (test_|course_tables)", (ROOT / tests).read_text(), re.MULTILINE
    )
    digest = hashlib.sha256()
    for name in _files():
        is_other = Path(name).name.startswith("test_") and name != tests and not takes_others
        if not is_other and not name.endswith(".md") and "mutants" not in name:
            digest.update(f"{name}\0{_content(name)}".encode())
    return digest.hexdigest()[:16]


@cache
def _content(name: str) -> str:
    return hashlib.sha256((ROOT / name).read_bytes()).hexdigest()


@contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """Have the mutant's file in a copy. Python's compiled form goes: that, too, knows time and size alone."""
    path = copy / mutant.file
    compiled, original = Path(importlib.util.cache_from_source(path)), path.read_bytes()
    try:
        compiled.unlink(missing_ok=True)
        path.write_text(mutant.code)
        yield
    finally:
        compiled.unlink(missing_ok=True)
        path.write_bytes(original)


def judge(mutant: Mutant, known: Covered, copy: Path) -> Verdict:
    """Run the tests of a mutant until one fails."""
    start, tests = perf_counter(), known.tests_of(mutant)
    with mutated(copy, mutant):
        killer = _try(copy, tests, known.seconds).killer
    return Verdict(mutant, killer, len(tests), perf_counter() - start)


def _try(copy: Path, tests: list[str], seconds: dict[str, float]) -> Outcome:
    """Run tests in this order until one fails."""
    if not tests:
        return Outcome(0, "")
    limits = {test: TEST_SECONDS + PATIENCE * seconds[test] for test in tests}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(limits, file)
        file.flush()
        files = dict.fromkeys(map(_file, tests))
        return _pytest(
            copy, ["-x", f"--only-tests={file.name}", *files], START_SECONDS + sum(limits.values())
        )


def _pytest(copy: Path, arguments: list[str], seconds: float | None) -> Outcome:
    """Run pytest in a copy with a new cache and a folder for temporary files; end all that it leaves."""
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        output = Path(folder, "output")
        paths = os.pathsep.join([str(copy), str(copy / "tests"), os.environ.get("PYTHONPATH", "")])
        fresh = {"LABKIT_CACHE": f"{folder}/cache", "PYTHONPATH": paths, "TMPDIR": folder}
        with output.open("w") as told:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *PYTEST, f"--basetemp={folder}/t", *arguments],
                cwd=copy,
                env=os.environ | fresh,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                start_new_session=True,
            )
        code: int | None = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Outcome(code, output.read_text(errors="replace"))


# The score


def score(
    modules: list[str], count: int, seed: int, workers: int, tests: list[str] | None = None
) -> list[tuple[str, Verdict]]:
    """Judge the drawn mutants of the modules, each with its module's name; `tests` replaces the module's."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copy_repository(Path(folder, str(number)))
            copies.put(Path(folder, str(number)))

        def with_copy(work: Callable[..., T], *given: Any) -> T:
            copy = copies.get()
            try:
                return work(*given, copy)
            finally:
                copies.put(copy)

        of = {name: test_files(tests or MODULES[name].tests) for name in modules}
        files = sorted({file for each in of.values() for file in each}, key=_size, reverse=True)
        with ThreadPoolExecutor(workers) as pool:
            known = dict(zip(files, pool.map(lambda file: with_copy(covered, file), files), strict=True))
            together = {name: _together([known[file] for file in of[name]]) for name in modules}

            def judged(name: str, mutant: Mutant) -> tuple[str, Verdict]:
                verdict = with_copy(judge, mutant, together[name])
                result = (
                    f"killed by {verdict.killer}" if verdict.killer else f"SURVIVED {verdict.tests} tests"
                )
                print(f"{name} {mutant.file}:{mutant.first} {result}, {verdict.seconds:.0f} s", flush=True)
                return name, verdict

            drawn = [(name, mutant) for name in modules for mutant in draw(name, count, seed)]
            return list(pool.map(lambda each: judged(*each), drawn))


def test_files(tests: Iterable[str]) -> list[str]:
    """Return the files of tests in these folders, files and patterns."""
    paths = [path for each in tests for path in ROOT.glob(each)]
    found = {file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    return sorted(file.relative_to(ROOT).as_posix() for file in found)


def _size(file: str) -> int:
    return (ROOT / file).stat().st_size


def table(judged: list[tuple[str, Verdict]], known: dict[tuple[str, str, str], str]) -> str:
    """Return the score of each module, and its survivors; `idle` ones are known to change nothing."""
    head = f"{'module':14}{'mutants':>8}{'killed':>8}{'survived':>10}{'score':>8}{'idle':>6}{'without':>9}"
    lines, survivors = [head], []
    for name in [*dict.fromkeys(name for name, _ in judged), "all"]:
        verdicts = [verdict for module, verdict in judged if name in (module, "all")]
        alive = [verdict.mutant for verdict in verdicts if not verdict.killer]
        idle, killed = sum(mutant.key in known for mutant in alive), len(verdicts) - len(alive)
        scores = [f"{killed / most:.0%}" if most else "-" for most in (len(verdicts), len(verdicts) - idle)]
        lines.append(
            f"{name:14}{len(verdicts):8}{killed:8}{len(alive):10}{scores[0]:>8}{idle:6}{scores[1]:>9}"
        )
    for name, verdict in judged:
        reason = known.get(verdict.mutant.key)
        if not verdict.killer:
            why = f"changes nothing: {reason}" if reason else f"{verdict.tests} tests tried"
            survivors.append(f"{name}: {verdict.mutant}\n    {why}")
        elif reason:
            survivors.append(f"{name}: {verdict.mutant}\n    is listed, and yet killed by {verdict.killer}")
    return "\n".join([*lines, "", *survivors])


def main(
    module: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(MODULES)}; all if none.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same mutants.")] = 1,
    count: Annotated[int, typer.Option(help="Mutants for each module.")] = 40,
    workers: Annotated[int, typer.Option(help="Mutants judged at the same time.")] = 2,
    tests: Annotated[list[str] | None, typer.Option(help="Files or folders; else the module's.")] = None,
    draws: Annotated[bool, typer.Option("--list", help="Print the drawn mutants, and run nothing.")] = False,
) -> None:
    """Print how many mutants of each module the tests kill, and the survivors."""
    modules = module or list(MODULES)
    if unknown := [name for name in modules if name not in MODULES]:
        raise typer.BadParameter(f"{', '.join(unknown)}: choose from {', '.join(MODULES)}.")
    if draws:
        print(*(f"{name}: {mutant}" for name in modules for mutant in draw(name, count, seed)), sep="\n")
        return
    try:
        print(f"seed {seed}\n{table(score(modules, count, seed, workers, tests), equivalent())}")
    except CannotJudge as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(main)
