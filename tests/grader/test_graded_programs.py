"""Whole programs are graded in a sandbox: right ones have their points, hostile ones are stopped."""

import pytest
from course_tables import NEEDS_COMPILERS, SOLVED, failed_criterion, mutant

from grader.judging import judge
from grader.model import GRADED, REGRADE, Answer, Submission
from grader.sandbox import process
from grader.sandbox.limits import Limits
from labkit.course import EXERCISES

pytestmark = pytest.mark.skipif(process.best() != process.BUBBLEWRAP, reason="there is no bubblewrap")


def graded(answers, **limits):
    """Results by exercise of these answers."""
    submission = Submission("Eve", answers={id: Answer(id, source) for id, source in answers.items()})
    found = judge.grade(submission, ("13",), 7, process.BUBBLEWRAP, Limits(**limits))
    return {result.exercise: result for result in found.results if result.exercise in answers}


BEGIN = "int n = atoi(argv[1]);"
HOSTILE = {
    "never ends": (f"{BEGIN} while (true);", {"answer_seconds": 25.0}, "was stopped"),
    "forks": (f"{BEGIN} while (true) fork();", {"processes": 100}, "processes and threads and was stopped"),
    "prints": (f'{BEGIN} while (true) puts("more and more");', {}, "it was ended by signal 9"),
    "takes memory": (f"{BEGIN} memset(malloc(3ul << 30), 1, 3ul << 30);", {"memory_bytes": 2**31}, "memory"),
    "reads files": (f'{BEGIN} if (fopen("/etc/passwd", "r")) exit(0); exit(77);', {}, "exit code is 77"),
}


@NEEDS_COMPILERS
@pytest.mark.parametrize(
    ("begin", "limits", "why"),
    [pytest.param(*case, id=name) for name, case in HOSTILE.items()],
)
def test_a_hostile_program_has_no_points_and_ends(begin, limits, why):
    headers = ("#include <vector>\n", "#include <vector>\n#include <cstring>\n#include <unistd.h>\n")
    found = graded({"13.1": mutant("13.1", headers, (BEGIN, begin))}, **limits)["13.1"]
    assert (found.state, found.points) == (GRADED, 0)
    assert why in found.failure, found


SERVERS = r"""
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

/* Each process that records: what it is told to do with it, and how many of its files open for writing. */
static int servers(bool kills)
{
    int opened = 0;
    DIR* processes = opendir("/proc");
    while (dirent* each = readdir(processes)) {
        std::string base = std::string("/proc/") + each->d_name;
        char line[4096] = {};
        int file = open((base + "/cmdline").c_str(), O_RDONLY);
        long length = file < 0 ? 0 : read(file, line, sizeof line - 1);
        close(file);
        std::string words(line, length > 0 ? length : 0);
        if (words.find("simt.programs.server") == std::string::npos)
            continue;
        if (kills)
            kill(atoi(each->d_name), SIGKILL);
        for (int number = 0; number < 300; ++number)
            opened += open((base + "/fd/" + std::to_string(number)).c_str(), O_WRONLY) >= 0;
        opened += open((base + "/mem").c_str(), O_RDWR) >= 0;
        opened += open((base + "/environ").c_str(), O_RDONLY) >= 0;
    }
    return opened;
}
"""
MAIN = "int main(int argc, char** argv)\n{\n"
PRINTED = '    printf("sum: %.10g\\n", sum);\n'


@NEEDS_COMPILERS
def test_a_program_cannot_reach_into_the_process_that_records():
    """It would exit with code 77 if it could open anything of it."""
    reaching = (MAIN, f"{SERVERS}{MAIN}"), (PRINTED, f"{PRINTED}    if (servers(false)) exit(77);\n")
    found = graded({"13.1": mutant("13.1", *reaching)})["13.1"]
    assert found.points == EXERCISES["13.1"].points, found


@NEEDS_COMPILERS
def test_a_program_that_ends_the_process_that_records_gains_nothing():
    killing = (
        (MAIN, f"{SERVERS}{MAIN}"),
        (PRINTED, f"{PRINTED}    fflush(stdout), servers(true), _exit(0);\n"),
    )
    found = graded({"13.1": mutant("13.1", *killing)})["13.1"]
    assert (found.state, found.points, failed_criterion(found)) == (GRADED, 0, 1), found


@NEEDS_COMPILERS
def test_a_right_program_has_its_points_and_a_wrong_one_is_told():
    wrong = mutant("13.2", ("exit(1)", "exit(3)"))
    found = graded({"13.1": SOLVED["13.1"], "13.2": wrong})
    assert found["13.1"].points == EXERCISES["13.1"].points, found
    assert found["13.2"].points < EXERCISES["13.2"].points
    assert "its exit code is 3; it should be 1" in found["13.2"].failure


def test_where_the_sandbox_lacks_nvcc_nothing_is_judged(monkeypatch):
    monkeypatch.setattr(judge.merge, "needed", lambda *_: [judge.merge.SETUP, _NO_NVCC])
    found = graded({"13.1": SOLVED["13.1"]})["13.1"]
    assert (found.state, found.points) == (REGRADE, None)
    assert "cannot build CUDA programs" in found.failure and "labkit[nvcc]" in found.failure


_NO_NVCC = "import simt.compiler.wheels as wheels\nwheels.program = lambda name: None"


@pytest.mark.parametrize(
    "line",
    ["13.1 -Xcompiler -fplugin=x.so", "13.1 -include /etc/passwd", "13.1 -ccbin ./gcc", "13.1 {print()}"],
)
def test_an_option_that_could_run_or_read_something_is_refused(line):
    found = graded({"13.1": f"%%program {line}\nint main() {{}}"})["13.1"]
    assert (found.state, found.points) == (GRADED, 0)
    assert "the grader does not take" in found.failure or "may not have" in found.failure
