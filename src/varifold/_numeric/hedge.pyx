"""Python class around the experts of hedge.pxd."""

import numpy as np

RATES = {"fixed": FIXED, "horizon": HORIZON, "anytime": ANYTIME}


cdef class Weights:
    """Exponentially weighted combination of k experts.

    `rate` is "fixed" (with `eta`), "horizon" (with `eta` the number of rounds) or "anytime"; `share` is the part
    of the weight that is redistributed after each round, -1 to tune it for one switch.
    """

    def __cinit__(self, int k, str rate="anytime", double eta=0.0, double share=0.0):
        if k < 1:
            raise ValueError(f"there must be at least one expert, not {k}")
        if share > 1.0 or (share < 0.0 and rate == "fixed"):
            raise ValueError(f"share={share} with rate={rate!r}: give a share in [0, 1], or -1 with another rate")
        if rate != "anytime" and not eta > 0.0:
            raise ValueError(f"rate={rate!r} needs eta > 0, not {eta}")
        if experts_make(&self.experts, k, RATES[rate], eta, share) < 0:
            raise MemoryError

    def __dealloc__(self):
        experts_free(&self.experts)

    def weights(self):
        """Return the weights of the next round."""
        cdef double[::1] out = np.zeros(self.experts.k)
        experts_weights(&self.experts, &out[0])
        return np.asarray(out)

    def learn(self, losses, double w=1.0):
        """Update the weights with the losses of one round, each multiplied by w."""
        cdef double[::1] given = np.ascontiguousarray(losses, dtype=np.float64)
        if given.shape[0] != self.experts.k:
            raise ValueError(f"{given.shape[0]} losses for {self.experts.k} experts")
        experts_learn(&self.experts, &given[0], w)

    def __reduce__(self):
        rate = next(name for name, code in RATES.items() if code == self.experts.rate)
        return Weights, (self.experts.k, rate, self.experts.eta, self.experts.share), self.dump()

    def __setstate__(self, numbers):
        self.fill(numbers)

    def dump(self):
        """Return the state as an array."""
        cdef double[::1] out = np.zeros(experts_size(&self.experts))
        experts_dump(&self.experts, &out[0])
        return np.asarray(out)

    def fill(self, numbers):
        """Restore what dump() returned."""
        cdef double[::1] given = np.ascontiguousarray(numbers, dtype=np.float64)
        if given.shape[0] != experts_size(&self.experts):
            raise ValueError("the numbers do not belong to as many experts")
        experts_fill(&self.experts, &given[0])
