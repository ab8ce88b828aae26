"""Print what labkit needs, for pip: python requirements.py [NAME]...

A NAME is an extra, whole, or a package of any extra. The bounds are pyproject.toml's.
"""

import re
import sys
import tomllib
from pathlib import Path


def requirements(project: dict, names: list[str]) -> list[str]:
    """The project's own dependencies, and those that `names` call for. Raises KeyError for a name it
    has not.
    """
    extras = project["optional-dependencies"]
    packages = {re.match(r"[\w-]+", line)[0]: line for lines in extras.values() for line in lines}
    found = [line for name in names for line in (extras[name] if name in extras else [packages[name]])]
    return [*project["dependencies"], *found]


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    print(*requirements(project, sys.argv[1:]), sep="\n")
