"""Turn LLVM code into machine code of this host, and into functions that Python can call."""

import ctypes
import itertools
from functools import lru_cache
from typing import Any

import llvmlite
from llvmlite import binding as llvm
from llvmlite import ir

# LLVM's level of optimisation, and the passes before it. NVRTC has optimised the kernel already. The passes
# of FAST turn stack slots into values, and drop what the masks of whole warps make superfluous. LLVM's own
# pipeline takes four times as long for code of the same speed; BRIEF takes half the time for code of half the
# speed.
FAST = (
    2,
    (
        "always_inliner",
        "sroa",
        "instruction_combine",
        "simplify_cfg",
        "new_gvn",
        "instruction_combine",
        "simplify_cfg",
    ),
)
BRIEF = (0, ("always_inliner", "sroa"))
_library_numbers = itertools.count()


@lru_cache
def _host(level: int) -> Any:
    """Return the host as LLVM's target machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        jit=True,
    )


@lru_cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_host(FAST[0]))


def machine_code(module: ir.Module, is_brief: bool) -> bytes:
    """Return a module's optimised machine code; `is_brief`: made quickly rather than running fast.

    Nothing unwinds it, so it has no unwinding tables to register. libgcc keeps the ranges of such tables in a
    tree, in which none may overlap; but a library with two sections of code may span another one. NumPy walks
    the stack before it multiplies large arrays, and crashed there.
    """
    for function in module.functions:
        if not function.is_declaration:
            function.attributes.add("nounwind")
    level, pass_names = BRIEF if is_brief else FAST
    machine = _host(level)
    parsed = llvm.parse_assembly(str(module))
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)  # fields lie as in ctypes
    passes = llvm.create_new_module_pass_manager()
    for name in pass_names:
        getattr(passes, f"add_{name}_pass")()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    passes.run(parsed, llvm.create_pass_builder(machine, options))
    return bytes(machine.emit_object(parsed))


@lru_cache(maxsize=1)
def host_key() -> list[str]:
    """Name what machine code depends on besides the kernel: this processor and LLVM."""
    return [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvmlite.__version__]


class Library:
    """Linked machine code. Keep it as long as its functions are used."""

    def __init__(self, code: bytes) -> None:
        name = f"kernel{next(_library_numbers)}"
        builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("run").add_current_process()
        self.tracker = builder.link(_linker(), name)
        self.address = self.tracker["run"]
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self.address)
