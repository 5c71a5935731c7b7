from varifold._engine.names cimport NameTable

cdef class Vocabulary(NameTable):
    pass

cdef class Labels:
    cdef readonly list values
    cdef dict index

cdef class Block:
    cdef readonly Vocabulary vocabulary
    cdef readonly Labels labels
    cdef readonly object indptr      # int64[n + 1]
    cdef readonly object indices     # int32[nnz], vocabulary ids
    cdef readonly object values      # float64[nnz], finite, clamped
    cdef readonly object codes       # int32[n], -1 without a label
    cdef readonly object weights     # float64[n] or None

cdef trusted(Vocabulary vocabulary, indptr, indices, values, codes, Labels labels, weights)
