"""Grading: submissions in, grades out, and whatever a submission does stays in its sandbox.

Reading
submissions.py   a folder of notebooks, read as JSON alone -> answers by exercise; entries.py: whose they
                 are, claims.py: which cell answers what
merge.py         answers -> notebooks of our own: setup, answer and check cells; magic_line.py: their
                 first lines

Running
sandbox.py       where answers run: namespaces and limits; filter.py: system calls that are refused,
                 filtered.py: puts the filter on, watch.py: what is used; container.py, keeper.py: podman
                 and docker; native.py: a student's C, gpu.py: times on a GPU
wire.py          what crosses the border: plain values, never objects; relay.py counts what a kernel sends
probe.py         inside: runs an answer as it is asked to, and hands values out
remote.py        outside: an answer in a sandbox, with the face of one that is here

Judging
plugin.py        nbval's plug-in: kernels in sandboxes, check cells judged outside; turns.py: who may run
judge.py         one submission -> its results; model.py: what passes between the parts
engine.py        all submissions, on the processes of this machine or of a cluster (cluster.py, by Dask)
run.py           what `labkit grade` does

Results
results.py       the store; tables.py, labs.py, scores.py: grades.csv and gradebooks; manifest.py
pages/           what students and teachers read; text.py: hostile text made harmless
"""
