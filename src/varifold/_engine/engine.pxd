cimport cython

from libc.stdint cimport int64_t

from varifold._engine.admission cimport Admission
from varifold._engine.data.block cimport Block
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport Model
from varifold._engine.scaler cimport Scaler
from varifold._engine.names.space cimport Space
from varifold._engine.targets.target cimport Target


@cython.final
cdef class Engine:
    cdef readonly Space space            # names <-> slots
    cdef readonly Scaler scaler          # statistics of the values
    cdef readonly Model model            # the method's mathematics
    cdef readonly Target target          # labels, numbers or nothing to predict
    cdef Instance instance               # the instance at hand
    cdef Admission admission             # features that come and go
    cdef bint calls_python               # the model calls Python code, which may raise
    # one call at a time
    cdef bint busy                       # inside a call
    cdef unsigned long holder            # the thread inside a `with`, 0 for none
    cdef int depth                       # its nested `with` statements

    cdef int claim(self) except -1
    cdef void release(self) noexcept
    cdef int process(self, double w, bint learn, bint predict) except -1 nogil
    cdef int reserve(self) except -1 nogil
    cdef int predict(self, bint commit) except -1 nogil
    cdef int learn(self, double w, bint presented) except -1 nogil
    cdef int finish(self) except -1 nogil
    cdef int raise_pending(self) except -1 with gil
    cdef int learn_dict(self, object x, object y, object w) except -1
    cdef int predict_dict(self, object x, bint probabilities, bint bounds) except -1
    cdef int run_rows(self, Block block, const int64_t[::1] steps, bint scheduled, bint learn, bint predict) except -1
    cdef int check_arrays(self, names, dict arrays) except -1
