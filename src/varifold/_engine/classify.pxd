from varifold._engine.block cimport Block
from varifold._engine.instance_doors cimport InstanceDoors


cdef class Engine(InstanceDoors):
    cdef int ready_row(self, int c, Py_ssize_t unknown) except -1 nogil
    cdef tuple walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint probabilities,
                    bint sets)
    cdef void write_sets(self, unsigned char* out, Py_ssize_t labels) noexcept nogil
