from libc.stdint cimport uint64_t

# Random draws are hashes of their purpose: there is no generator state, and predict has no side effects.
cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    z += 0x9E3779B97F4A7C15ULL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)

cdef inline uint64_t draw(uint64_t seed, uint64_t a, uint64_t b) noexcept nogil:
    """Return 64 random bits for (seed, a, b)."""
    return mix(mix(mix(seed) ^ a) ^ b)

cdef inline double unit_interval(uint64_t z) noexcept nogil:
    """Convert 64 random bits to a number in [0, 1)."""
    return <double> (z >> 11) * (1.0 / 9007199254740992.0)
