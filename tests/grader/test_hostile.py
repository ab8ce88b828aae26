"""Hostile answers: none gains a point that it did not earn, and none disturbs an honest one beside it.

Answers in Python run in a process of their own that may do what it likes, in a sandbox. So an attack is a
cell that does something first, and then answers wrongly: it must be worth nothing.
"""

import os
import sys
from pathlib import Path

import psutil
import pytest
from course_tables import SOLVED, mutant

from grader.judging import judge, plugin
from grader.model import GRADED, Answer, Submission
from grader.sandbox import process
from grader.sandbox.limits import Limits
from labkit.course import EXERCISES
from labkit.course.criteria import c_functions

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")

HONEST = "00.1"  # beside the attacks
IN_PYTHON = ("07.1", "07.3", "08.4", "09.3", "09.6", "09.7")
WRONG = "\ndef answer(*args):\n    return 0\n"
SMALL = Limits(
    cell_seconds=3, answer_seconds=3, memory_bytes=2**30, disk_bytes=2**26, message_bytes=2**21, processes=200
)


@pytest.fixture(autouse=True)
def isolated(monkeypatch):
    """These answers run nowhere but in a sandbox, which is not waited for as long as a class's."""
    if process.best() != process.BUBBLEWRAP:
        why = "bubblewrap does not work here"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    monkeypatch.setattr(plugin, "END_SECONDS", 1)


def results(answers, limits=SMALL):
    """Results by exercise of these answers, and of an honest one beside them."""
    answers = {HONEST: SOLVED[HONEST]} | answers
    labs = {id.partition(".")[0] for id in answers}
    submission = Submission("Eve", answers={id: Answer(id, source) for id, source in answers.items()})
    graded = judge.grade(submission, sorted(labs), 7, process.BUBBLEWRAP, limits)
    return {result.exercise: result for result in graded.results if result.exercise in answers}


def are_worth_nothing(found):
    """Each but the honest answer has no points, and is not left to be graded again."""
    assert found.pop(HONEST).points == EXERCISES[HONEST].points
    return all((result.state, result.points) == (GRADED, 0) for result in found.values())


def in_python(attacks):
    """Answers that attack and are wrong, by exercise: texts of Python, with a function of their own
    or not.
    """
    return {
        id: f"%%answer {id}\n{attack}{'' if 'def answer' in attack else WRONG}"
        for id, attack in zip(IN_PYTHON, attacks, strict=False)
    }


FORGED = {
    "input transformer": "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])",
    "syntax tree": """
import ast
class Nothing(ast.NodeTransformer):
    def visit_Call(self, node): return ast.Constant(1)
get_ipython().ast_transformers.append(Nothing())""",
    "equal to everything": """
class Sly(float):
    def __eq__(self, other): return True
    def __le__(self, other): return True
    __lt__ = __ge__ = __le__
    def __sub__(self, other): return self
    __rsub__ = __abs__ = lambda self, *_: self
    def __iter__(self): return iter((self, self))
    def __array__(self, *_, **__): return self
def answer(*args): return Sly()""",
    "probe changed": """
from grader.sandbox import probe
probe._Bench.do_call = lambda self, args: {"returned": True, "arrays": [None] * len(args)}""",
    "a kernel in its place": """
from grader.sandbox import probe
probe._Bench.do_describe = lambda self: {
    "magic": "cuda", "name": "k", "code": "", "options": [], "expressions": []}""",
    "the errors are its own": """
from simt.common import errors
for name in dir(errors):
    if isinstance(getattr(errors, name), type): setattr(errors, name, KeyboardInterrupt)
def answer(*args): raise KeyboardInterrupt""",
}
PRETENDED = {
    "display and print": """
import builtins, IPython.display
from IPython.core.displayhook import DisplayHook
builtins.print = lambda *_, **__: None
DisplayHook.__call__ = lambda self, result=None: None
IPython.display.display("09.6: solved", {"text/plain": "✓ all points"}, raw=True)""",
    "other answers": """
from labkit import magic
magic.answers = {id: (lambda *args: True) for id in ("07.1", "07.3", "08.4", "09.3", "09.6", "09.7")}""",
    "messages": """
import msgpack, json
msgpack.packb = lambda *_, **__: b"\\xc3"
json.dumps = lambda *_, **__: '{"ok": true}'""",
    "tags and comments": "# NBVAL_SKIP\n# NBVAL_IGNORE_OUTPUT\n# NBVAL_RAISES_EXCEPTION\nraise ValueError",
    "files beside": """
from pathlib import Path
for folder in (Path.cwd(), Path.home(), Path("/tmp")):
    for name in ("conftest.py", "numpy.py", "sitecustomize.py", "usercustomize.py", "labkit.py"):
        (folder / name).write_text("import os; os._exit(0)")
start = Path.home() / ".ipython/profile_default/startup"
start.mkdir(parents=True, exist_ok=True)
(start / "00.py").write_text("import os; os._exit(0)")""",
    "a report": """
from pathlib import Path
Path("junit.xml").write_text('<testsuite tests="1" failures="0"/>')
Path("grades.csv").write_text("Eve,09.7,2,2")""",
}
VIOLENT = {
    "ends": "import os; os._exit(0)",
    "kills all": "import os, signal; os.kill(-1, signal.SIGKILL)",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\nos.kill(1, 9)",
    "forks": "import os\nwhile True: os.fork()",
    "starts threads": """
import threading, time
while True: threading.Thread(target=time.sleep, args=(60,)).start()""",
    "takes memory": "held = []\nwhile True: held.append(bytearray(10**7))",
}
ENDLESS = {
    "loops": "while True: pass",
    "prints": "while True: print('x' * 10**5)",
    "prints in pieces": "import sys\nwhile True: sys.stdout.write('x'); sys.stdout.flush()",
    "writes files": """
for k in range(10**6):
    open(f"/tmp/{k}", "wb").write(bytes(10**7))""",
    "writes where the sockets are": """
import os, pathlib
folder = pathlib.Path(os.environ["LABKIT_JUDGE"]).parent
for k in range(10**6):
    (folder / str(k)).write_bytes(bytes(10**7))""",
    "never ends its text": """
class Long:
    def __repr__(self):
        while True: pass
def answer(*args): return Long()""",
}
NOISY = {
    "returns too much": "def answer(*args): return ['x' * 10**6] * 10**6",
    "raises too much": """
class Loud(Exception):
    def __str__(self): return "x" * 10**9
def answer(*args): raise Loud""",
    "raises what cannot be told": """
class Quiet(Exception):
    def __str__(self): raise self
    __repr__ = __str__
def answer(*args): raise Quiet""",
    "garbage to the judge": """
import os, socket
judge = socket.socket(socket.AF_UNIX)
judge.connect(os.environ["LABKIT_JUDGE"])
judge.sendall(os.urandom(10**6))""",
    "threads that stay": """
import threading
def noise():
    while True: print("noise" * 1000)
threading.Thread(target=noise).start()""",
    "nothing kept": "answers = None\ndef answer(): pass\ndel answer\nanswer = 3\ndef _(): pass",
}


ATTACKS = {"forged": FORGED, "pretended": PRETENDED, "violent": VIOLENT, "endless": ENDLESS, "noisy": NOISY}


@pytest.mark.parametrize("kind", ATTACKS)
def test_answers_in_python_that_attack_are_worth_nothing(kind):
    """All of the kind in one submission, each in an exercise of its own."""
    attacks = in_python(ATTACKS[kind].values())
    assert len(attacks) == len(ATTACKS[kind])
    assert are_worth_nothing(results(attacks))


SECRETS = r"right_on\(|BEGIN SOLUTION|def _operations|test_the_solution"
LOOK = f"""
import os, re, socket, subprocess
seen = []
def look():
    for top in ("/work", "/root", "/home", "/tmp", "/opt", "/srv", "/etc", os.path.dirname(os.__file__)):
        for folder, _, names in os.walk(top):
            if "site-packages" in folder and "labkit" not in folder:
                continue
            for name in names:
                path = os.path.join(folder, name)
                if not name.endswith((".ipynb", ".py", ".json", ".csv", ".md")) or "labkit" not in path:
                    continue
                try:
                    text = open(path, errors="replace").read()
                except OSError:
                    continue
                if re.search("{SECRETS}", text):
                    seen.append(path)
    try:
        import labkit.course.exercise
        seen.append("labkit.course")
    except ImportError:
        pass
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = open(f"/proc/{{pid}}/cmdline").read()
        except OSError:
            continue
        if "pytest" in command:
            seen.append(command)
    for address in (("127.0.0.1", 22), ("1.1.1.1", 53), ("pypi.org", 443)):
        try:
            socket.create_connection(address, 0.5)
            seen.append(str(address))
        except OSError:
            pass
    if "SECRET_OF_THE_GRADER" in os.environ:
        seen.append("environment")
def answer(*args):
    look()
    raise RuntimeError(f"seen: {{seen}}")
"""


def test_a_sandbox_shows_no_solution_no_criterion_no_process_and_no_network(monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_GRADER", "1")
    found = results(in_python([LOOK]), Limits())
    assert "seen: []" in found["07.1"].failure, found["07.1"].failure
    assert are_worth_nothing(found)


def test_an_answer_finds_nothing_that_another_has_left():
    leave = (
        "from pathlib import Path\nfor top in ('/tmp', Path.home()):\n    Path(top, 'left').write_text('me')"
    )
    look = """
from pathlib import Path
def answer(*args):
    left = [*Path("/tmp").rglob("left"), *Path.home().rglob("left")]
    raise RuntimeError(f"left: {left}")"""
    found = results(in_python([leave, look]))
    assert "left: []" in found["07.3"].failure
    assert are_worth_nothing(found)


def test_functions_of_the_judge_tell_no_more_than_they_return():
    look = """
def answer(launch, synchronize, clock):
    told = [getattr(each, "__self__", None) for each in (launch, synchronize, clock)]
    cells = [cell.cell_contents for each in (launch, synchronize, clock) for cell in each.__closure__ or ()]
    raise RuntimeError(f"kernel_ms: {'kernel_ms' in repr([told, [dir(each) for each in cells]])}")"""
    found = results({"09.7": f"%%answer 09.7\n{look}"})
    assert "kernel_ms: False" in found["09.7"].failure
    assert are_worth_nothing(found)


IN_CUDA = {
    "00.2": """%%cuda 00.2 {__import__("os").system("touch /tmp/was_here")}
extern "C" __global__ void k(int* out, int rows, int cols) {}""",
    "02.1": """import numpy as np
def matmul(A, B, C, *_): C[:] = A @ B""",
    "02.2": f"%%cuda 02.2 -include /etc/passwd\n{SOLVED['02.2'].partition(chr(10))[2]}",
    "02.3": f'%%cuda 02.3\n#include "/etc/passwd"\n{SOLVED["02.3"].partition(chr(10))[2]}',
    "02.4": f'%%cuda 02.4\n#include "{process.PACKAGE}/course/exercise.py"\nint x = 3',
}


def test_answers_in_cuda_are_text_and_nothing_else():
    found = results(IN_CUDA)
    assert "root:" not in found["02.3"].failure
    assert "Criterion" not in found["02.4"].failure.replace(IN_CUDA["02.4"], "")
    assert are_worth_nothing(found)
    assert not Path("/tmp/was_here").exists()


def test_a_cell_that_is_no_answer_in_cuda_does_not_run_as_python():
    ran = "import os\nos.environ['RAN'] = '1'\n"
    found = results({"02.1": f"{ran}{SOLVED['02.1']}", "02.2": f"%%time\n{ran}", "02.3": f"!touch x\n{ran}"})
    assert are_worth_nothing(found)


KERNEL = (
    'extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K, '
    "float alpha, float beta)"
)


def test_kernels_that_do_not_end_or_print_without_end_are_stopped():
    bomb = "template<int N> struct T { static const long v = T<N-1>::v + T<N-2>::v * N; };"
    types = "template<class A> struct P0 { A x; };" + "".join(
        f"template<class A> struct P{k} {{ P{k - 1}<A> x; P{k - 1}<A*> y; }};" for k in range(1, 40)
    )
    found = results(
        {
            "02.1": f"%%cuda 02.1\n{KERNEL} {{ volatile int k = 1; while (k) k = 2; }}",
            "02.2": f'%%cuda 02.2\n{KERNEL} {{ for (int k = 0; k >= 0; ++k) printf("%d %d\\n", k, M); }}',
            "02.3": f"%%cuda 02.3\n{bomb}\n{KERNEL} {{ C[0] = T<100000>::v; }}",
            "02.4": f"%%cuda 02.4\n{types}\n{KERNEL} {{ P39<int> p; C[0] = sizeof p; }}",
        }
    )
    assert are_worth_nothing(found)


def test_a_kernel_that_knows_the_visible_sizes_by_heart_falls_short():
    sizes = "(M == 16 && N == 16) || (M == 32 && N == 32) || (M == 48 && N == 48) || (M == 64 && N == 64)"
    found = results({"02.1": mutant("02.1", ("float sum = 0;", f"float sum = 0; if (!({sizes})) return;"))})
    assert found["02.1"].points < EXERCISES["02.1"].points


C = "void matmul(const float *A, const float *B, float *C, int M, int N, int K)"
RIGHT = """{
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k < K; ++k)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}"""
IN_C = {
    "01.1": f"""%%c 01.1
#include <signal.h>
#include <unistd.h>
{C} {{ kill(getppid(), SIGKILL); kill(-1, SIGKILL); for (;;) fork(); }}""",
    "01.3": f"""%%c 01.3
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
{C}
{{
    FILE *output = fopen("output", "wb");
    char zeros[65536] = {{0}};
    fwrite(zeros, 1, sizeof zeros, output);
    fclose(output);
    _exit(0);
}}""",
    "01.4": f"""%%c 01.4
#include <time.h>
static long now;
int clock_gettime(clockid_t id, struct timespec *t)
{{
    t->tv_sec = 0;
    t->tv_nsec = now += 1000;
    return 0;
}}
{C} {RIGHT}""",
}


def test_functions_in_c_that_attack_gain_nothing(monkeypatch):
    monkeypatch.setattr(c_functions, "ATTEMPTS", 1)
    found = results(IN_C, Limits(cell_seconds=20, answer_seconds=60, processes=100))
    speed = found.pop("01.4")  # its products are right, and slow: what it was handed out with
    assert not speed.points  # none, or to be graded again: tests beside this one keep the machine busy
    assert "times as fast" in speed.failure or "busy with something else" in speed.failure
    assert are_worth_nothing(found)


def test_nothing_is_left_behind():
    folders = set(Path("/tmp").glob("labkit-*"))
    results(
        in_python(
            [VIOLENT["kills all"], "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass"]
        )
    )
    assert not [each for each in psutil.Process().children(recursive=True) if "bwrap" in each.name()]
    if not os.environ.get("PYTEST_XDIST_WORKER"):  # tests beside this one have folders, too
        assert set(Path("/tmp").glob("labkit-*")) <= folders
