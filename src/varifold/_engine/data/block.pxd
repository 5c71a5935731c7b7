from varifold._engine.names.vocabulary cimport Labels, Vocabulary

cdef extern from "varifold/_engine/constants.h":
    const double LARGEST_WEIGHT "VARIFOLD_LARGEST_WEIGHT"     # larger weights count as this, so that sums stay finite
    const double SMALLEST_WEIGHT "VARIFOLD_SMALLEST_WEIGHT"   # smaller weights count as 0: their quotients are not finite

cdef class Block:
    cdef readonly Vocabulary vocabulary
    cdef readonly Labels labels
    cdef readonly object indptr      # int64[n + 1]
    cdef readonly object indices     # int32[nnz], vocabulary ids
    cdef readonly object values      # float64[nnz], finite, clamped
    cdef readonly object codes       # int32[n], -1 without a label
    cdef readonly object weights     # float64[n] or None
    cdef readonly object targets     # float64[n] of numbers to predict, NaN without one; or None: labels are predicted

cdef int freeze(Block b) except -1
cdef trusted(Vocabulary vocabulary, indptr, indices, values, codes, Labels labels, weights, targets)
