"""The system calls that a program in a sandbox may not make, as a filter of the Linux kernel (seccomp).

They are those through which a program would get memory that is in no process and no file, so that no limit
counts it; look into other processes; make namespaces, in which it may do more; or reach what has no
namespace: keys, and sockets to the host of a virtual machine. It sees them fail with EPERM.
"""

import errno
import platform
import struct
from collections.abc import Iterable

# Of each call its numbers on x86-64 and on ARM64.
REFUSED = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "landlock_create_ruleset": (444, 444),
    "seccomp": (317, 277),
    "io_uring_setup": (425, 425),
    "io_setup": (206, 0),
    "vmsplice": (278, 75),
}
CLONE, CLONE3, MMAP, SOCKET, SET_OPTION = (56, 220), (435, 435), (9, 222), (41, 198), (54, 208)
PRCTL, ADD_FILTER = (157, 167), 22  # PR_SET_SECCOMP: a filter like this one is memory of the kernel's
SOCKET_LEVEL, BUFFERS = 1, (7, 8, 32, 33)  # SOL_SOCKET; SO_SNDBUF, SO_RCVBUF, and the same by force
FORKS = {"fork": (57, -1 & 0xFFFFFFFF), "vfork": (58, -1 & 0xFFFFFFFF)}  # ARM64 has clone alone
THREAD = 0x10000  # the flag CLONE_THREAD
NAMESPACES = 0x7E020000  # the flags CLONE_NEW… of clone
SHARED_MEMORY = 0x21  # MAP_SHARED | MAP_ANONYMOUS: stays when it is in no process's resident memory any more
FAMILIES = (1, 16)  # of sockets: Unix, netlink; what IPv4 and IPv6 keep, also without a network, has no limit

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # a column above; AUDIT_ARCH_…
OTHER_ABI = 0x40000000  # from here on x86-64's calls are those of x32

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _MACHINE = 0, 4  # offsets in struct seccomp_data
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000

_Step = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def seccomp_filter(forks: bool = True) -> bytes:
    """Return the filter for this machine, as the kernel takes it; without `forks` a process starts threads
    alone. Raises KeyError for a processor that it is not for.
    """
    column, machine = MACHINES[platform.machine()]
    steps: list[_Step] = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, machine), _fail(errno.EPERM)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, OTHER_ABI), _fail(errno.ENOSYS)]
    for numbers in (REFUSED if forks else REFUSED | FORKS).values():
        steps += [(_EQUAL, 0, 1, numbers[column]), _fail(errno.EPERM)]
    # Its flags are in memory, where no filter can look; the C library then takes clone.
    steps += [(_EQUAL, 0, 1, CLONE3[column]), _fail(errno.ENOSYS)]
    spaces = [(_ANY_BIT, 0, 1, NAMESPACES), _fail(errno.EPERM)]
    processes = [] if forks else [(_ANY_BIT, 1, 0, THREAD), _fail(errno.EPERM)]
    steps += _of(CLONE[column], [_argument(0), *spaces, *processes])
    shared = [(_AND, 0, 0, SHARED_MEMORY), (_EQUAL, 0, 1, SHARED_MEMORY), _fail(errno.EPERM)]
    steps += _of(MMAP[column], [_argument(3), *shared])
    steps += _of(PRCTL[column], [_argument(0), (_EQUAL, 0, 1, ADD_FILTER), _fail(errno.EPERM)])
    known = [(_EQUAL, len(FAMILIES) - at, 0, family) for at, family in enumerate(FAMILIES)]
    steps += _of(SOCKET[column], [_argument(0), *known, _fail(errno.EAFNOSUPPORT)])
    larger = [step for option in BUFFERS for step in ((_EQUAL, 0, 1, option), _fail(errno.EPERM))]
    of_sockets = (_EQUAL, 0, 1 + len(larger), SOCKET_LEVEL)
    steps += _of(SET_OPTION[column], [_argument(1), of_sockets, _argument(2), *larger])
    return b"".join(struct.pack("=HBBI", *step) for step in [*steps, (_RETURN, 0, 0, _ALLOW)])


def _of(number: int, steps: Iterable[_Step]) -> list[_Step]:
    """Return the steps for one call, which is allowed if they come to their end."""
    behind = [*steps, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(behind), number), *behind]


def _argument(place: int) -> _Step:
    """Load an argument's lower 32 bits, where both machines keep them first."""
    return _LOAD, 0, 0, 16 + 8 * place


def _fail(code: int) -> _Step:
    return _RETURN, 0, 0, _FAIL | code
