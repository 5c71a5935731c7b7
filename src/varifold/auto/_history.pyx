"""The history of expert weights as arrays, for reports and files. What is done per instance stands in `_history.pxd`."""

import numpy as np

from varifold._engine.state import checked_array


cdef tuple history_rows(History* h):
    """(steps, weights): the weights over the stream."""
    cdef Py_ssize_t i
    cdef int e
    steps = np.array([h.step[i] for i in range(h.count)], dtype=np.int64)
    rows = np.array([[h.weights[i * h.width + e] for e in range(h.width)] for i in range(h.count)])
    return steps, rows.reshape(len(steps), h.width)


cdef dict history_dump(History* h):
    """The history as arrays of a file; the losses are not among them."""
    steps, rows = history_rows(h)
    return {"history.step": steps, "history.weights": rows, "history.every": np.array([h.every], dtype=np.int64)}


cdef int history_fill(History* h, dict arrays) except -1:
    """Take what history_dump() gave; arrays that do not fit are refused, and nothing changes."""
    cdef Py_ssize_t i
    cdef int e
    steps = checked_array(arrays, "history.step", "i", (None,), 0).tolist()
    if len(steps) > ROWS:
        raise ValueError(f"a history of {len(steps)} rows; there are at most {ROWS}")
    rows = checked_array(arrays, "history.weights", "f", (len(steps), h.width))
    h.every = checked_array(arrays, "history.every", "i", (1,), 1, 1 << 53)[0]
    h.count = len(steps)
    for i in range(h.count):
        h.step[i] = steps[i]
        for e in range(h.width):
            h.weights[i * h.width + e] = rows[i, e]
    return 0
