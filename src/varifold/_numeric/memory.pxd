"""Memory allocation; a failed request leaves the old block unchanged.

Every compiled module allocates here, so that a test can make any single request fail.
"""

cdef void* allocate(size_t bytes) noexcept nogil
cdef void* allocate_aligned(size_t bytes) noexcept nogil
cdef int resize(void** block, size_t bytes) noexcept nogil
cdef int resize_zeroed(void** block, size_t old_bytes, size_t bytes) noexcept nogil
cdef int out_of_memory() except -1 with gil
