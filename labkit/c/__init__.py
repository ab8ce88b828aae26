"""A student's C on this machine's processor, each call in a process of its own.

    compile.py      C -> a shared library or a program, cached; the compiler's warnings
    source.py       which functions a source defines, and the code that calls one
    arguments.py    Python arguments -> the memory that a C function gets, and back
    driver.c        the program around a function; function.py builds it, run.py starts and reads it
    bounds.c        checks each access where the compiler has no AddressSanitizer
    process.py      run any program within limits on its time and on what it prints
    run.py          one run: arguments in, its result or what went wrong out
    report.py       what a sanitizer, an assert or a signal says, as an error for a student
    function.py     CFunction, with which Python calls and times a C function

This file imports nothing itself: compile.py is used before NumPy is installed.
"""
