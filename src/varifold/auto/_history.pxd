"""Expert weights over the stream, and running losses of the answers."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._numeric.memory cimport allocate

cdef enum:
    ROWS = 64              # of the history; when it is full every other row goes

cdef struct History:
    int width
    double* weights        # [ROWS][width]
    int64_t* step
    int64_t count, every   # rows held, and steps between them
    double losses[4]       # error and log loss, each averaged over about 50 and about 1,000 rounds: see update_losses

cdef tuple history_rows(History* h)
cdef dict history_dump(History* h)
cdef int history_fill(History* h, dict arrays) except -1


cdef inline int history_make(History* h, int width) noexcept nogil:
    """An empty history of this many weights per row; -1 without memory. Free with history_free()."""
    h.width = width
    h.count = 0
    h.every = 1
    h.weights = <double*> allocate(ROWS * width * sizeof(double))
    h.step = <int64_t*> allocate(ROWS * sizeof(int64_t))
    return 0 if h.weights != NULL and h.step != NULL else -1


cdef inline void history_free(History* h) noexcept nogil:
    free(h.weights)
    free(h.step)


cdef inline void update_losses(History* h, int64_t step, bint wrong, double loss) noexcept nogil:
    """Count an answer: plain means for the first 20 rounds, then over about 50 and about 1,000."""
    cdef double slow = min(<double> step, 1000.0)
    if step < 20:
        h.losses[0] = h.losses[1] = (h.losses[1] * step + wrong) / (step + 1)
        h.losses[2] = h.losses[3] = (h.losses[3] * step + loss) / (step + 1)
    else:
        h.losses[0] += (wrong - h.losses[0]) / 50.0
        h.losses[1] += (wrong - h.losses[1]) / slow
        h.losses[2] += (loss - h.losses[2]) / 50.0
        h.losses[3] += (loss - h.losses[3]) / slow


cdef inline double* history_row(History* h, int64_t step) noexcept nogil:
    """Where to write the weights after this step, NULL between two rows; rows are spread evenly over the stream."""
    cdef int64_t i
    if step % h.every:
        return NULL
    if h.count == ROWS:
        for i in range(ROWS // 2):
            h.step[i] = h.step[2 * i]
            memcpy(h.weights + i * h.width, h.weights + 2 * i * h.width, h.width * sizeof(double))
        h.count = ROWS // 2
        h.every *= 2
        if step % h.every:
            return NULL
    h.step[h.count] = step + 1
    h.count += 1
    return h.weights + (h.count - 1) * h.width
