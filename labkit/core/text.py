"""Small phrases that messages and pictures share."""


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 block, 2 blocks."""
    return f"{number} {what}{'s' * (number != 1)}"
