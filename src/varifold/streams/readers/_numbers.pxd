# 1 and the number that the bytes spell, or 0 when they are not one. Exactly what Python's float() gives.
cdef int read_number(const char* s, Py_ssize_t n, char decimal, double* out) except -1
