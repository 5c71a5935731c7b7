from varifold.forest._feature_state cimport FeatureStates


cdef class SavedFeatureStates(FeatureStates):
    cdef int fill_digests(self, Py_ssize_t u, int wide, object digests, object points) except -1
