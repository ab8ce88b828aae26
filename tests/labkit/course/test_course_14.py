"""Checks of notebook 14: what students start from and typical mistakes fail; other right answers pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.exercises import lab_14

STARTERS = {"14.1": (1, "'x'", "'arithmetic'", lab_14.START)}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


X, Y, Z = '("bank conflicts", 31.2)', '("few warps", 1.99)', '("memory bandwidth", 86.1)'
WRONG = [
    ("14.1", "x is limited by its cache, but not by sectors", 1, lab_14.START, (X, '("scattered loads", 4)')),
    ("14.1", "wavefronts, not conflicts", 1, "32.2", (X, '("bank conflicts", 32.2)')),
    ("14.1", "all conflicts, not per load", 1, "6.536e+07", (X, '("bank conflicts", 65_355_859)')),
    ("14.1", "y has no busy part", 2, lab_14.START, (Y, '("memory bandwidth", 2.48)')),
    ("14.1", "occupancy in per cent", 2, "3.11", (Y, '("few warps", 3.11)')),
    ("14.1", "z's cache is busier in per cent", 3, "91.9", (Z, '("memory bandwidth", 91.9)')),
    ("14.1", "z waits like y", 3, lab_14.START, (Z, '("few warps", 49.6)')),
    ("14.1", "no pair", 1, "arithmetic", ("}[kernel]", "}[kernel][0]")),
    ("14.1", "a text for a number", 3, "arithmetic", (Z, '("memory bandwidth", "86.1")')),
    ("14.1", "not a number", 3, "nan", (Z, '("memory bandwidth", float("nan"))')),
    ("14.1", "a list in a pair", 1, "arithmetic", (X, '(["bank conflicts"], 31)')),
    ("14.1", "a kernel is missing", 3, "KeyError", ('"z": ', '"w": ')),
]
test_mistakes_fail_and_are_told_why = checks_of_mistakes(WRONG)


OTHERS = [
    ("14.1", "lists, and rounded figures", (X, '["bank conflicts", 31]'), (Y, '["few warps", 2]')),
    (
        "14.1",
        "worked out from the report",
        (X, '("bank conflicts", 65_355_859 / 2_097_152)'),
        (Z, '("memory bandwidth", 86)'),
    ),
]
test_other_right_answers_pass = checks_of_other_answers(OTHERS)
