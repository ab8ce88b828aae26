"""Grading: submissions in, grades out, and whatever a submission does stays in its sandbox.

    submissions.py   a folder of notebooks, read as JSON alone -> answers by exercise; entries.py: whose they
                     are, claims.py: which cell answers what
    merge.py         answers -> notebooks of our own: setup, answer and check cells; magic_line.py: their
                     first lines
    sandbox.py       where a notebook's kernel runs: namespaces, limits
    wire.py          what crosses the border: plain values, never objects
    probe.py         inside: runs an answer as it is asked to, and hands values out
    remote.py        outside: an answer in a sandbox, with the face of one that is here
    plugin.py        nbval's plug-in: kernels in sandboxes, check cells judged outside
    judge.py         one submission -> its results
    engine.py        all submissions, on the processes of this machine or of a cluster (Dask)
    results.py       grades.csv, gradebooks, manifest; pages/ what students and teachers read
"""
