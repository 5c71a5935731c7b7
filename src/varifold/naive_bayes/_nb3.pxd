from libc.stdint cimport int32_t

from varifold._engine.view cimport View
from varifold.naive_bayes._class_table cimport PresenceTable

cdef struct Ranked:
    double chi2
    Py_ssize_t i      # entry of the view

cdef class NB3Model(PresenceTable):
    cdef readonly double M        # share of the features present that is used
    cdef Ranked* ranked           # scratch, by slot
    cdef double* product          # scratch, [class]

    cdef Py_ssize_t select(self, View* v) noexcept nogil
    cdef double log_ratio(self, int32_t slot, int label) noexcept nogil
