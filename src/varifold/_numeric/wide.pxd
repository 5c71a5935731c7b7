"""Functions that are also compiled for the wider registers of newer processors.

A function of return type `wide` is compiled twice by GCC on x86-64 Linux, for AVX2 and for every processor, and the
loader picks one when the module is loaded; elsewhere only the second exists. Both compute a number by the same
operations in the same order (no fused multiply-add, see core_c_args in meson.build), so that results do not depend on
the machine.

An inline function of return type `inlined` becomes part of each caller. Called with a length that is the constant 1
it loses its inner loops; called from a `wide` function with any length, its inner loops use the wide registers. So a
kernel over m contiguous numbers is written once and is as fast as two specialised ones.
"""

cdef extern from "varifold/_numeric/wide.h":
    ctypedef void wide "VARIFOLD_WIDE void"
    ctypedef void inlined "VARIFOLD_INLINED void"
