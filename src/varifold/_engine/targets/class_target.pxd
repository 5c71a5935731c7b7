cimport cython

from libc.stdint cimport int32_t

from varifold._engine.targets.decision cimport Decision
from varifold._engine.targets.target cimport Target


@cython.final
cdef class ClassTarget(Target):
    cdef readonly list labels
    cdef dict index                      # label -> class
    cdef Decision decision               # how the prediction follows from the probabilities
    cdef Py_ssize_t capacity             # labels there is memory for
    cdef double* counts                  # [class] weight learned
    # the instance at hand
    cdef object new_label                # of a dict call, while y is -1
    cdef int code                        # its label in the block at hand; -1 in a dict call
    cdef int known                       # classes when it was predicted
    cdef int predicted                   # class, -1 before any label
    cdef bint with_probabilities
    cdef double* scores                  # [class]
    cdef double* chances                 # [class] probabilities
    # the block at hand
    cdef tuple block_labels
    cdef const int32_t* codes            # [row]
    cdef int32_t* class_of               # [code] class, -1 for a label that has not been learned
    cdef Py_ssize_t width                # labels that there is a column for
    cdef int32_t* out_class
    cdef double* out_chances
    cdef unsigned char* out_sets

    cdef int reserve_labels(self, Py_ssize_t labels) except -1
    cdef void score(self) noexcept nogil
    cdef void to_probabilities(self) noexcept nogil
    cdef void choose(self) noexcept nogil
    cdef void bound(self) noexcept nogil
    cdef void count(self, double w) noexcept nogil
