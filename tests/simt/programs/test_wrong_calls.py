"""What the CUDA runtime answers to wrong calls, compared line by line with what an H200 answered.

errors_h200.txt: `nvcc errors.cu -o errors && ./errors && ./errors fault`, CUDA 13.0, driver 580.159.04,
2026-11-24.
"""

from pathlib import Path

HERE = Path(__file__).parent


def test_wrong_calls_get_the_answers_of_an_h200(built):
    program = built((HERE / "sources" / "errors.cu").read_text())
    recorded = (HERE / "errors_h200.txt").read_text().splitlines()
    found = [line for arguments in ((), ("fault",)) for line in program.run(*arguments)[0].splitlines()]
    assert found == [line for line in recorded if line]
