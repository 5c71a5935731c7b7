"""Count bits and find the lowest one, with the processor's instructions where it has them."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef extern from "varifold/_numeric/bits.h":
    bint counts_bits "varifold_counts_bits"() noexcept nogil                      # whether there is an instruction
    int popcount_by "varifold_popcount_by"(bint instruction, uint64_t) noexcept nogil
    int lowest_bit "varifold_lowest_bit"(uint64_t) noexcept nogil


cdef inline int popcount(uint64_t x) noexcept nogil:
    """Return the number of ones. In a loop, call counts_bits() once and use popcount_by()."""
    return popcount_by(counts_bits(), x)


cdef inline uint64_t bits_of(double x) noexcept nogil:
    """Return the bits of a number: the same for equal numbers, except for 0.0 and -0.0."""
    cdef uint64_t bits
    memcpy(&bits, &x, sizeof(bits))
    return bits
