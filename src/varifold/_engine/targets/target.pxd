from varifold._engine.data.block cimport Block
from varifold._engine.conformal.levels cimport Conformal
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport Model


cdef class Target:
    cdef Instance instance
    cdef Model model
    cdef readonly Conformal conformal    # None without intervals or sets
    cdef int y                           # class of the instance at hand, NEW_LABEL or NO_LABEL; 0 without classes
    cdef bint has_truth                  # the instance at hand has a label, or a number, or needs none
    cdef bint with_bounds                # predict() computes intervals or sets too
    cdef bint with_memo                  # predict() computes all that a memo holds
    cdef const double* memo              # of the instance that is learned, NULL for none
    cdef object memo_held                # the array that holds it
    cdef tuple outputs                   # arrays of the block at hand, which write() fills

    cdef int attach(self, Instance instance, Model model) except -1
    cdef bint sees_instance(self) noexcept nogil
    # one instance
    cdef int begin(self, bint probabilities, bint bounds) except -1
    cdef int read(self, object y) except -1
    cdef int reserve_label(self) except -1 with gil
    cdef int add_label(self) except -1 with gil
    cdef bint predicts_first(self) noexcept nogil
    cdef void predict(self) noexcept nogil
    cdef void learn(self, double w) noexcept nogil
    cdef void learn_unlabelled(self, double w) noexcept nogil
    cdef bint fuses(self) noexcept nogil
    # the memo of a prediction
    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil
    cdef int memo_classes(self) noexcept nogil
    cdef void write_memo(self, double* out) noexcept nogil
    cdef void recall(self, const double* memo) noexcept nogil
    cdef object make_memo(self)
    cdef int classes_of(self, object numbers) except -2
    cdef int take_memo(self, object memo) except -1
    cdef void predict_and_learn(self) noexcept nogil
    # the rows of a block
    cdef object schedule(self, Block block, object steps, bint learn)
    cdef int begin_block(self, Block block, bint learn, bint predict, bint probabilities, bint bounds) except -1
    cdef void read_row(self, Py_ssize_t row) noexcept nogil
    cdef void hide_truth(self) noexcept nogil
    cdef void write_row(self, Py_ssize_t row) noexcept nogil
    cdef object end_block(self)
    # what the last prediction was
    cdef object prediction(self)
    cdef object probabilities(self)
    cdef object margins(self)
    cdef object bounds(self)
    cdef object explain(self, int c)
    cdef tuple contributions(self, int c)
    cdef dict nbytes(self)
    # files
    cdef list label_list(self)
    cdef dict dump(self)
    cdef int check(self, list labels, dict arrays) except -1
    cdef int fill(self, list labels, dict arrays) except -1
