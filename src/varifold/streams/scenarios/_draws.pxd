from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

# Random bits as hashes of (seed, row, column): no generator state, so a stream may be cut into blocks anywhere.
cdef extern from "varifold/streams/scenarios/draws.h":
    uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil      # upper 64 of the 128 bits of a * b
    uint64_t folded_product(uint64_t a, uint64_t b) noexcept nogil    # upper xor lower 64 bits of a * b
    void prefetch(const void* a) noexcept nogil
    const uint64_t STRIDE                                             # step of the hash input per number

cdef enum:
    BITS = 31       # bits of a probability

cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    """Mix the bits of z with the finaliser of splitmix64."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EBULL
    return z ^ (z >> 31)

cdef inline uint64_t row_key(uint64_t seed, int64_t row) noexcept nogil:
    """Return the key from which all draws of one row are hashed."""
    cdef uint64_t step = 0x9E3779B97F4A7C15ULL
    return mix(mix(seed + step) + <uint64_t> row * step)

cdef inline uint64_t hash_of(uint64_t z) noexcept nogil:
    return folded_product(z, z ^ <uint64_t> 0xE7037ED1A0B428DBULL)

cdef inline uint64_t word_at(uint64_t key, uint64_t number) noexcept nogil:
    """Return word `number` of the random bits of a key."""
    return hash_of(key + (number + 1) * STRIDE)

cdef inline uint32_t draw(uint64_t key, uint64_t column) noexcept nogil:
    """Return BITS random bits for one column; their numbers start at 2^40, beyond those of the bit planes."""
    return <uint32_t> (word_at(key, (1ULL << 40) + column) >> (64 - BITS))

# draw() in two parts, for loops over a row's ids: draw_of(id, draws_from(key, shift)) is draw(key, id - shift).
cdef inline uint64_t draws_from(uint64_t key, int32_t shift) noexcept nogil:
    return key + ((1ULL << 40) + 1 - <uint64_t> shift) * STRIDE

cdef inline uint32_t draw_of(int32_t id, uint64_t start) noexcept nogil:
    return <uint32_t> (hash_of(start + <uint64_t> id * STRIDE) >> (64 - BITS))
