"""The command that fixes something on this Python: clone or installed, in conda or on Colab."""

import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pip(arguments: str) -> str:
    """Return a command of this Python's own pip, which need not be the first on the PATH."""
    if on_colab():
        return f"%pip {arguments}"
    if not find_spec("pip") and shutil.which("uv"):  # uv makes environments without pip
        verb, _, rest = arguments.partition(" ")
        return f"uv pip {verb} --python {shlex.quote(sys.executable)} {rest.removeprefix('--yes ')}"
    return f"{shlex.quote(sys.executable)} -m pip {arguments}"


def install(extra: str = "") -> str:
    """Return the command that installs what labkit or one of its extras needs; empty where there is none.

    On PyPI the name labkit belongs to another project: pip takes it for this one only where labkit is
    installed.
    """
    wanted = f"[{extra}]" if extra else ""
    if (ROOT / "pyproject.toml").is_file():
        return pip(f"install --editable {shlex.quote(f'{ROOT}{wanted}')}")
    return pip(f"install {shlex.quote(f'labkit{wanted}')}") if installed("labkit") else ""


def cupy(extra: str) -> str:
    """Return the command that installs CuPy for the CUDA of an extra, such as cuda13."""
    if in_conda():
        return conda(f"'cupy>=14,<15' cuda-version={extra.removeprefix('cuda')} nvidia-ml-py")
    return install(extra)


def other_cupy(wheels: list[str], extra: str) -> str:
    """Return the command that removes these wheels of CuPy and installs the one that fits."""
    remove, add = pip(f"uninstall --yes {' '.join(wheels)}"), cupy(extra)
    if on_colab():  # one line each, as %pip has no &&
        remove, add = remove.replace("%", "!", 1), add.removeprefix("%")
    return f"{remove} && {add}"


def compiler() -> str:
    """Return the command that installs a C compiler; the extra's wheel needs no administrator rights."""
    if in_conda() and sys.platform.startswith("linux"):
        return conda("gcc")
    return install("cc")


def conda(packages: str) -> str:
    """Return the command that installs packages into this conda environment."""
    manager = next(filter(shutil.which, ("conda", "mamba", "micromamba")), "conda")
    return f"{manager} install --prefix {shlex.quote(sys.prefix)} --channel conda-forge {packages}"


def system_package(**names: str) -> str:
    """Return the command that installs a system package, named per package manager; empty for others."""
    manager = next(filter(shutil.which, names), None)
    return f"sudo {manager} install {names[manager]}" if manager else ""


def on_colab() -> bool:
    """Return whether this is a session of Google Colab."""
    return "COLAB_RELEASE_TAG" in os.environ


def in_conda() -> bool:
    """Return whether this Python belongs to a conda environment."""
    return Path(sys.prefix, "conda-meta").is_dir()


def installed(package: str) -> str:
    """Return the version of a package; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
