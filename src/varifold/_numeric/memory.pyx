"""Memory allocation; a failed request leaves the old block unchanged."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

cdef size_t JUMP = 1 << 20    # bytes from which resize_zeroed() may allocate a new block

cdef extern from "varifold/_numeric/aligned.h":
    void* varifold_aligned(size_t bytes) noexcept nogil
    size_t varifold_block_size(void* block) noexcept nogil

cdef long long requests = 0     # counted since fail_at() was called
cdef long long failing = 0      # the request that fails; 0: none
cdef long long allowed = -1     # bytes that may still be requested; -1: any number
cdef bint denied = False        # whether a request exceeded the allowance


cdef bint fails_now(size_t bytes) noexcept nogil:
    """Count a request; return whether it exceeds the allowance, or is the one that a test makes fail."""
    global requests, allowed, denied
    if allowed >= 0:
        if bytes > <size_t> allowed:
            denied = True
            return True
        allowed -= <long long> bytes
    if failing == 0:
        return False
    requests += 1
    return requests == failing


cdef void* allocate(size_t bytes) noexcept nogil:
    """Return zeroed memory, or NULL. Release it with free()."""
    if fails_now(bytes):
        return NULL
    return calloc(1, bytes if bytes else 1)


cdef void* allocate_aligned(size_t bytes) noexcept nogil:
    """Return zeroed memory for vectorised loops, or NULL. Release it with free().

    On Linux it is aligned to a cache line, and a block of 4 MB or more uses huge pages if the system has them.
    """
    if fails_now(bytes):
        return NULL
    return varifold_aligned(bytes)


cdef int resize(void** block, size_t bytes) noexcept nogil:
    """Resize the block to this many bytes; return 0, or -1 and leave the block unchanged."""
    cdef void* p
    cdef size_t old_bytes = 0 if allowed < 0 or block[0] == NULL else varifold_block_size(block[0])
    if fails_now(bytes - old_bytes if bytes > old_bytes else 0):
        return -1
    p = realloc(block[0], bytes if bytes else 1)
    if p == NULL:
        return -1
    block[0] = p
    return 0


cdef int resize_zeroed(void** block, size_t old_bytes, size_t bytes) noexcept nogil:
    """Resize the block as resize() does, and set the bytes after the first `old_bytes` to zero.

    A block that becomes much larger at once, as when a file is loaded, is allocated again: large blocks from calloc()
    use no memory before they are written to, so capacity that a file requests and never fills costs nothing.
    """
    cdef void* fresh
    if bytes >= JUMP and bytes // 4 >= old_bytes:
        fresh = allocate(bytes)
        if fresh == NULL:
            return -1
        if old_bytes:
            memcpy(fresh, block[0], old_bytes)
        free(block[0])
        block[0] = fresh
        return 0
    if resize(block, bytes) < 0:
        return -1
    if bytes > old_bytes:
        memset(<char*> block[0] + old_bytes, 0, bytes - old_bytes)
    return 0


cdef int out_of_memory() except -1 with gil:
    """Raise MemoryError, from code that runs without the GIL."""
    raise MemoryError


def fail_at(long long k):
    """Make the k-th request from now on fail, for tests; 0 lets all succeed. Return the requests counted before."""
    global requests, failing
    counted = requests
    requests = 0
    failing = k
    return counted


def allow(long long bytes):
    """Let later requests fail once they sum to more than this many bytes; -1 lifts the limit.

    Return what was left of the previous allowance. A block that grows counts by its growth; memory that is released is
    not counted. The limit holds for the whole process: only one thread may learn while it is set.
    """
    global allowed, denied
    left = allowed
    allowed = max(bytes, -1)
    if bytes >= 0:
        denied = False
    return left


def was_denied():
    """Return whether a request exceeded the latest allowance."""
    return denied
