from libc.stdint cimport int32_t, int64_t, uint8_t

# One instance as a model sees it: slots ascending, intercept (slot 0) first when there is one.
cdef struct View:
    Py_ssize_t n
    int32_t* slot
    double* x          # scaled; the intercept is 1.0, an indicator 1.0
    double* raw        # as given, clamped to +-1e150
    uint8_t* is_new     # 1 where no instance learned before had the slot (only a learning view has such slots)
    Py_ssize_t columns
    int32_t* column    # columns present, ascending: a number's own slot, an indicator's column
    int64_t step       # learns completed before this instance
    Py_ssize_t known   # features known, this instance's included, intercept not counted
