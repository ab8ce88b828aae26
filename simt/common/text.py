"""Small phrases that messages and pictures share."""


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 block, 2 blocks."""
    return f"{number} {what}{'s' * (number != 1)}"


def article(name: str) -> str:
    """Return a name with "a" or "an", as it is read: a T4, an H200, an RTX 4090."""
    return f"{'an' if name[0] in 'AEFHILMNORSX' else 'a'} {name}"


def duration(seconds: float) -> str:
    """Return a time with its unit, to three digits: 12.3 µs, 4.56 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
