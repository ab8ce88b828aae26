"""One submission judged, and many of them on the cores of a machine or a cluster."""
