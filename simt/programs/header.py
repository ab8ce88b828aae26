"""The numbers that a program's runtime library and its server share, as runtime/runtime.h has them."""

import re
from pathlib import Path

HEADER = Path(__file__).parent / "runtime" / "runtime.h"


def numbers(enum: str) -> dict[str, int]:
    """Return the numbers of an enum of the header, by name."""
    body = re.search(rf"^enum {enum} \{{(.*?)\}};", HEADER.read_text(), re.S | re.M)
    assert body, f"runtime.h has no enum {enum}"
    return {name: int(number) for name, number in re.findall(r"\b([A-Z_]+) = (\d+)", body[1])}
