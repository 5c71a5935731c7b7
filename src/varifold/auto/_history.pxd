"""What the experts weighed over the stream, and how the answers fared lately."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

cdef enum:
    HISTORY = 64

cdef struct Chronicle:
    int width
    double* weights        # [HISTORY][width]
    int64_t* step
    int64_t count, every
    double watch[4]        # errors and log losses, quickly and slowly averaged


cdef inline int chronicle_make(Chronicle* h, int width) noexcept nogil:
    h.width = width
    h.count = 0
    h.every = 1
    h.weights = <double*> calloc(HISTORY * width, sizeof(double))
    h.step = <int64_t*> calloc(HISTORY, sizeof(int64_t))
    return 0 if h.weights != NULL and h.step != NULL else -1


cdef inline void chronicle_free(Chronicle* h) noexcept nogil:
    free(h.weights)
    free(h.step)


cdef inline void chronicle_fare(Chronicle* h, int64_t step, bint wrong, double loss) noexcept nogil:
    """Count an answer: plain means for the first 20 rounds, then over about 50 and about 1,000."""
    cdef double slow = min(<double> step, 1000.0)
    if step < 20:
        h.watch[0] = h.watch[1] = (h.watch[1] * step + wrong) / (step + 1)
        h.watch[2] = h.watch[3] = (h.watch[3] * step + loss) / (step + 1)
    else:
        h.watch[0] += (wrong - h.watch[0]) / 50.0
        h.watch[1] += (wrong - h.watch[1]) / slow
        h.watch[2] += (loss - h.watch[2]) / 50.0
        h.watch[3] += (loss - h.watch[3]) / slow


cdef inline double* chronicle_page(Chronicle* h, int64_t step) noexcept nogil:
    """Where to write the weights after this step, NULL when it is not its turn; pages are spread evenly."""
    cdef int64_t i
    if step % h.every:
        return NULL
    if h.count == HISTORY:
        for i in range(HISTORY // 2):
            h.step[i] = h.step[2 * i]
            memcpy(h.weights + i * h.width, h.weights + 2 * i * h.width, h.width * sizeof(double))
        h.count = HISTORY // 2
        h.every *= 2
        if step % h.every:
            return NULL
    h.step[h.count] = step + 1
    h.count += 1
    return h.weights + (h.count - 1) * h.width
