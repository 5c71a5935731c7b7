from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold.neighbours._rows cimport KeptRow, Rows

cdef enum:
    MOST = 64          # maximum number of neighbours that vote

cdef inline void leave_out(View* v, Py_ssize_t i, View* part) noexcept nogil:
    """Copy all entries of a view but the i-th to the arrays of `part`."""
    part.n = v.n - 1
    memcpy(part.slot, v.slot, i * sizeof(int32_t))
    memcpy(part.slot + i, v.slot + i + 1, (v.n - 1 - i) * sizeof(int32_t))
    memcpy(part.x, v.x, i * sizeof(double))
    memcpy(part.x + i, v.x + i + 1, (v.n - 1 - i) * sizeof(double))

cdef class NeighboursModel(Model):
    cdef readonly int k
    cdef readonly Py_ssize_t window
    cdef bint single                   # values are rounded to single precision
    cdef Rows kept                     # ring of the latest instances
    cdef KeptRow* row                  # its rows
    cdef double* counts                # [class]: weight learned
    cdef double* table                 # scratch [slot][window]: values of the instances, NONE if absent
    cdef Py_ssize_t tabled             # slots in the table; 0: no table
    cdef double* total                 # scratch [window]: distances
    cdef double* shared                # scratch [window]: number of shared features
    cdef double* dense                 # scratch, by slot: the instance's values, ABSENT elsewhere
    cdef double* partial_scores        # scratch, [class]: scores without one feature
    cdef int32_t* partial_slot         # scratch: slots of the instance without one feature
    cdef double* partial_x             # scratch: their values
    cdef uint8_t* marked               # scratch [slot]: evicted features that rows may still hold
    cdef bint any_marked

    cdef void forget_marked(self) noexcept nogil
    cdef double distance(self, KeptRow* r) noexcept nogil
    cdef void enter(self, Py_ssize_t place, bint take_out) noexcept nogil
    cdef void measure(self, View* v, Py_ssize_t held) noexcept nogil
    cdef int neighbours_of(self, View* v, Py_ssize_t* place) noexcept nogil
