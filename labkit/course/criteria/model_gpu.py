"""A model of the one property of a GPU that timing stumbles over: it works while the host goes on."""


class ModelGpu:
    """A GPU that takes kernels from a queue. It computes nothing, and its clock is its own.

    All times are milliseconds. The kernel runs for `kernel_ms`. The host takes `launch_ms` to put it into the
    queue, the first time `first_ms` more. `queued_ms` of other work is in the queue already.
    """

    def __init__(
        self, kernel_ms: float, launch_ms: float = 0.005, first_ms: float = 0, queued_ms: float = 0
    ) -> None:
        self.kernel_ms, self.launch_ms, self.first_ms = kernel_ms, launch_ms, first_ms
        self._now, self._idle_from = 0.0, queued_ms

    def launch(self) -> None:
        """Put the kernel into the queue, and return."""
        self._now += self.launch_ms + self.first_ms
        self._idle_from = max(self._idle_from, self._now) + self.kernel_ms
        self.first_ms = 0

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self._now = max(self._now, self._idle_from)

    def clock(self) -> float:
        """Return the host's clock in seconds, like time.perf_counter."""
        return self._now / 1e3
