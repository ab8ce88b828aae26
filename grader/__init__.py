"""Grade a class: submissions in, grades out, and whatever a submission does stays in its sandbox.

run.py is what `labkit grade` does; report.py writes all tables and pages, and later.py lists answers that are
alike and forgets a student. What passes between the rooms is
in model.py; text.py makes hostile text harmless.

intake/    submissions.py reads a folder of notebooks, as JSON alone, and says what became of each file; a zip
           goes through unpack.py. entries.py finds whose files are, claims.py which cell answers what, and
           handed_out.py knows the cells in which nobody has worked. merge.py puts answers into notebooks of
           our own. magic_line.py reads the first lines of cells, and labs.py knows the labs of a class and
           their points.
sandbox/   process.py is where answers run, within limits.py. seccomp.py lists refused system calls,
           filtered.py refuses them in a container, and watch.py sees what a sandbox uses. container.py and
           keeper.py are for podman and docker, native.py for a student's C, gpu.py for times on a GPU.
           machine_lock.py says who may run. Plain values and never objects cross the border (wire.py), and
           relay.py counts what a kernel sends. Inside, probe.py runs an answer as it is asked to.
judging/   judge.py turns one submission into its results. plugin.py is nbval's plug-in: kernels run in
           sandboxes, and check cells are judged outside. remote.py is an answer in a sandbox, used as if it
           were here. faults.py tells an answer's errors from the grader's, and clock.py ends what takes too
           long. engine.py grades all submissions, on processes of this machine (pool.py) or on a Dask
           cluster (cluster.py).
results/   store.py keeps results, and judged_by.py knows which of them other rules have judged. by_hand.py
           and roster.py read what an instructor lays beside the grades (written.py); handed_in.py says when
           work came in. tables.py and scores.py make grades.csv and gradebooks, sent_back.py the zips for
           Moodle and Canvas, similar.py pairs of answers that are alike; manifest.py tells what took part.
pages/     makes what students and teachers read.
"""

import sys

# jsonschema would take seconds to make parsers of web addresses, which notebooks do not have.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
