"""OLIDS (You et al. 2023): a margin learner for incomplete and imbalanced streams.

Features of the round before and all others form two blocks. The confidence of a block is its share of the running
variance h of the features present, p and 1 - p, and its part of the score and of the step is multiplied by it:
f = p w_c.x_c + (1 - p) w_n.x_n. The cap of the step is C theta n_-y / (n_+ + n_-), larger for the rarer class.
"""

cimport cython
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.models.one_vs_rest cimport TOGETHER, at
from varifold._engine.names.space cimport Seen, seen_last
from varifold._engine.view cimport View
from varifold._numeric.wide cimport inlined, wide
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.state import per_slot

# state per slot
cdef enum:
    W = 0        # weight, over SCALE
    COUNT = 1
    MEAN = 2
    M2 = 3
    ROWS = 4     # of a column with string values: weight of the rows that had one (only with `by_column`)

# state per problem
cdef enum:
    SCALE = 0    # factor on every stored weight
    PLUS = 1     # weight of the instances of +1, from 1
    MINUS = 2
    MASS = 3     # sum of |w| h over all features
    SPREAD = 4   # sum of h over all features


cdef inline void welford(double* s, Py_ssize_t plane, double x, double w) noexcept nogil:
    """Add a value of weight w to the running mean and squared deviations (Welford)."""
    cdef double d = x - s[MEAN * plane], count = s[COUNT * plane] + w, mean = s[MEAN * plane] + d * (w / count)
    cdef double m2 = s[M2 * plane] + max(w * d * (x - mean), 0.0)  # below 0 if the mean is rounded past x
    s[COUNT * plane] = count
    s[MEAN * plane] = mean
    s[M2 * plane] = 1e300 if m2 > 1e300 else m2


cdef inline double spread_with(double* s, Py_ssize_t plane, double x, double w) noexcept nogil:
    """Return the variance of a slot's values with one more value x of weight w."""
    cdef double d = x - s[MEAN * plane], count = s[COUNT * plane], share = 1.0 / (count + w)
    return (s[M2 * plane] + w * count * share * d * d) * share


cdef class OLIDSRule(TruncatedRule)    # used by the functions before its definition


cdef inline inlined measure_problems(OLIDSRule rule, View* v, int first, int m, Py_ssize_t plane, double w, bint levels,
                                     double* f, double* norm, double* parts) noexcept nogil:
    """Compute the scores and the squared norms of (1 - p) x_n and p x_c of m problems; 1 - p and p into `parts`.

    p is the share of variance of the features that stayed, this instance's values included. mark_stays() was called.
    """
    cdef double* left = parts
    cdef double* stayed = parts + TOGETHER
    cdef double all[TOGETHER]
    cdef double* s
    cdef double* part
    cdef double x, spread, scaled
    cdef Py_ssize_t i
    cdef bint stays
    cdef int c
    memset(all, 0, m * sizeof(double))
    memset(stayed, 0, m * sizeof(double))
    memset(f, 0, m * sizeof(double))
    memset(norm, 0, m * sizeof(double))
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        stays = rule.stays[i]
        for c in range(m):
            spread = rule.next_variance(v.slot[i], first + c, x, w) if levels else spread_with(s + c, plane, x, w)
            all[c] += spread
            stayed[c] += spread if stays else 0.0
    for c in range(m):
        stayed[c] = stayed[c] / all[c] if all[c] > 0.0 else 1.0
        left[c] = 1.0 - stayed[c]
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        part = parts + rule.stays[i] * TOGETHER
        for c in range(m):
            x = rule.value(v, i, first + c, w) if levels else v.x[i]
            scaled = part[c] * x
            f[c] += part[c] * s[c] * x
            norm[c] += scaled * scaled
    for c in range(m):
        f[c] *= rule.shared[(first + c) * rule.globals + SCALE]


cdef inline inlined learn_problems(OLIDSRule rule, View* v, int first, int m, Py_ssize_t plane, const double* y,
                                   double w, bint levels, bint sparse, double* f) noexcept nogil:
    """Update m problems, or one that has levels or is sparse: w_c += p step x_c, w_n += (1 - p) step x_n."""
    cdef double norm[TOGETHER]
    cdef double parts[2 * TOGETHER]    # 1 - p and p, then times the step
    cdef double* s
    cdef double* part
    cdef double x, step
    cdef Py_ssize_t i
    cdef int c
    rule.mark_stays(v)
    measure_problems(rule, v, first, m, plane, w, levels, f, norm, parts)
    for i in range(v.n if sparse else 0):
        rule.add_mass(v.slot[i], first, -1.0)
    for c in range(m):
        step = rule.step_of(first + c, f[c], norm[c], y[c], w)
        parts[c] *= step
        parts[TOGETHER + c] *= step
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        part = parts + rule.stays[i] * TOGETHER
        x = v.x[i]
        if levels:
            s[W] += part[0] * rule.value(v, i, first, w)
            rule.count(v.slot[i], first, x, w)
        else:
            for c in range(m):
                s[c] += part[c] * x
                welford(s + c, plane, x, w)
        if sparse:
            rule.add_mass(v.slot[i], first, 1.0)
            rule.update_heap(v.slot[i], first)
    if sparse:
        rule.truncate(v.known, first)


cdef wide weigh_many(OLIDSRule rule, View* v, int first, int m, double* f) noexcept nogil:
    cdef double norm[TOGETHER]
    cdef double parts[2 * TOGETHER]
    measure_problems(rule, v, first, m, rule.plane, 1.0, False, f, norm, parts)


cdef wide learn_many(OLIDSRule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    learn_problems(rule, v, first, m, rule.plane, y, w, False, False, f)


@cython.final
cdef class OLIDSRule(TruncatedRule):
    """Per slot and problem: weight, and Welford's count, mean and squared deviations of the values.

    With `by_column` an indicator's values are those of a 0/1 column that is present with its string column: the
    column's slot counts the rows, and p (1 - p) is the variance of a value present in a share p of them. With `clip`
    the 1 is standardised like numeric values: (1 - p) / sqrt(p (1 - p)); the values of the other levels are left
    out.
    """

    cdef readonly double C, theta, lam, B
    cdef readonly bint by_column     # an indicator is 0 in rows where its column has another value
    cdef readonly double clip        # bound of a standardised indicator; 0 leaves indicators at 1
    cdef uint8_t* stays              # scratch, by entry of the view: the feature was present in the round before

    def __cinit__(self, double C, double theta, double lam, double B, bint by_column=True, double clip=0.0):
        self.by_column = by_column
        self.clip = clip
        self.scale = SCALE
        self.declare_rule(ROWS + 1 if by_column else ROWS, 5)
        self.C = C
        self.theta = theta
        self.lam = lam
        self.B = B
        self.sparse = B < 1.0
        self.arrays.scratch(&self.stays, per_slot())

    cdef void start(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        TruncatedRule.start(self, c)
        g[PLUS] = 1.0
        g[MINUS] = 1.0

    cdef void negate(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        TruncatedRule.negate(self, c)
        g[PLUS], g[MINUS] = g[MINUS], g[PLUS]

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a slot's weight from MASS and set it to zero."""
        cdef double* s = at(self, slot, c)
        self.shared[c * self.globals + MASS] -= (
            fabs(s[W] * self.shared[c * self.globals + SCALE]) * self.variance(slot, c)
        )
        s[W] = 0.0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int c
        for c in range(self.problems):
            self.shared[c * self.globals + SPREAD] -= self.variance(slot, c)
        TruncatedRule.forget(self, slot)

    cdef inline bint has_levels(self) noexcept nogil:
        """Test whether a slot can be the level of a column that counts rows."""
        return self.by_column and self.space.indicators > 0

    cdef inline bint is_level(self, int32_t slot) noexcept nogil:
        return self.by_column and (self.space.kind[slot] & INDICATOR) != 0

    cdef inline double column_rows(self, int32_t slot, int c) noexcept nogil:
        """Return the weight of the rows that had an indicator's column, with a string or a number."""
        cdef double* head = at(self, self.space.column[slot], c)
        cdef double rows = head[ROWS * self.plane] + head[COUNT * self.plane]
        cdef double own = at(self, slot, c)[COUNT * self.plane]
        return rows if rows > own else own

    cdef double value(self, View* v, Py_ssize_t i, int c, double w) noexcept nogil:
        """Return the value of an entry; an indicator is standardised over its column's rows and this one of weight w."""
        cdef double share, z
        if self.clip <= 0.0 or not self.is_level(v.slot[i]):
            return v.x[i]
        share = (at(self, v.slot[i], c)[COUNT * self.plane] + w) / (self.column_rows(v.slot[i], c) + w)
        z = sqrt((1.0 - share) / share)
        return v.x[i] * (z if z < self.clip else self.clip)

    cdef double variance(self, int32_t slot, int c) noexcept nogil:
        cdef double* s = at(self, slot, c)
        cdef double share, count = s[COUNT * self.plane]
        if count <= 0.0:
            return 0.0
        if self.is_level(slot):
            share = count / self.column_rows(slot, c)
            return share * (1.0 - share)
        return s[M2 * self.plane] / count

    cdef double next_variance(self, int32_t slot, int c, double x, double w) noexcept nogil:
        """Return the variance with one more value x of weight w."""
        cdef double* s = at(self, slot, c)
        cdef double share, count = s[COUNT * self.plane]
        if self.is_level(slot):
            share = (count + w) / (self.column_rows(slot, c) + w)
            return share * (1.0 - share)
        return spread_with(s, self.plane, x, w)

    cdef void count(self, int32_t slot, int c, double x, double w) noexcept nogil:
        """Count one more value; for an indicator only the counts matter."""
        if self.is_level(slot):
            at(self, slot, c)[COUNT * self.plane] += w
            at(self, self.space.column[slot], c)[ROWS * self.plane] += w
        else:
            welford(at(self, slot, c), self.plane, x, w)

    cdef void sum_up(self, int c) noexcept nogil:
        """Compute MASS and SPREAD from all slots: a row of a column changes the variance of every value of it."""
        cdef double* g = self.shared + c * self.globals
        cdef Py_ssize_t slot
        cdef double h
        g[MASS] = 0.0
        g[SPREAD] = 0.0
        for slot in range(self.space.size):
            h = self.variance(<int32_t> slot, c)
            g[MASS] += fabs(at(self, <int32_t> slot, c)[W] * g[SCALE]) * h
            g[SPREAD] += h

    cdef inline bint stayed(self, View* v, Py_ssize_t i) noexcept nogil:
        """Test whether the previous instance also had the feature, or its column; the intercept always counts."""
        cdef int32_t head
        if self.is_level(v.slot[i]):
            head = self.space.column[v.slot[i]]
            if self.space.seen[head].packed_first and seen_last(&self.space.seen[head]) == v.step:
                return True
        return not v.is_new[i] and (v.slot[i] == 0 or seen_last(&self.space.seen[v.slot[i]]) == v.step)

    cdef void mark_stays(self, View* v) noexcept nogil:
        """Compute stayed() of every entry into `stays`; without branches where there are no levels."""
        cdef Py_ssize_t i
        cdef Seen* seen = self.space.seen
        cdef uint8_t* stays = self.stays
        if self.has_levels():
            for i in range(v.n):
                stays[i] = self.stayed(v, i)
            return
        for i in range(v.n):
            stays[i] = (v.is_new[i] == 0) & ((v.slot[i] == 0) | (seen_last(&seen[v.slot[i]]) == v.step))

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        cdef int c
        cdef double score, norm
        cdef double parts[2 * TOGETHER]
        self.mark_stays(v)
        if m > 1 and not self.has_levels():
            weigh_many(self, v, first, m, f)
            return
        for c in range(m):
            measure_problems(self, v, first + c, 1, self.plane, 1.0, self.has_levels(), &score, &norm, parts)
            f[c] = score

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double parts[2 * TOGETHER]
        cdef double f, norm, sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        self.mark_stays(v)
        measure_problems(self, v, c, 1, self.plane, 1.0, self.has_levels(), &f, &norm, parts)
        for i in range(v.n):
            out[i] = sign * parts[self.stays[i] * TOGETHER] * self.coefficient(v.slot[i], c) * self.value(v, i, c, 1.0)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        if w == 1.0:
            TruncatedRule.learn_scored(self, v, y, w, scores, probs)
        else:
            Model.learn_scored(self, v, y, w, scores, probs)  # with another weight the confidence differs

    cdef int batch(self, View* v) noexcept nogil:
        return 1 if self.has_levels() else TruncatedRule.batch(self, v)

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        """Run one round; write the scores before it, for an instance of this weight, to `f`."""
        cdef double score  # a local variable: the compiler knows that no weight is stored there
        if m > 1:
            learn_many(self, v, first, m, y, w, f)
            return
        if self.sparse or self.has_levels():
            learn_problems(self, v, first, 1, self.plane, y, w, self.has_levels(), self.sparse, &score)
        elif self.plane == 1:  # a constant distance is worth a copy of the loops
            learn_problems(self, v, first, 1, 1, y, w, False, False, &score)
        else:
            learn_problems(self, v, first, 1, self.plane, y, w, False, False, &score)
        f[0] = score

    cdef double step_of(self, Py_ssize_t c, double f, double norm, double y, double w) noexcept nogil:
        """Count an instance of problem c; return the step of its values times their confidence.

        tau = min(C theta n_-y / (n_+ + n_-), (1 - y f) / norm): the cap is larger for the rarer class.
        """
        cdef double* g = self.shared + c * self.globals
        cdef double cost, cap, step = 0.0
        cost = self.theta * (g[MINUS] if y > 0.0 else g[PLUS]) / (g[PLUS] + g[MINUS])
        if y * f < 1.0 and norm > 0.0:
            cap = self.C * cost * w
            step = (1.0 - y * f) / norm
            step = y * (cap if step > cap else step) / g[SCALE]
        if y > 0.0:
            g[PLUS] += w
        else:
            g[MINUS] += w
        return step

    cdef void add_mass(self, int32_t slot, int c, double sign) noexcept nogil:
        """Add a slot's weight and variance to MASS and SPREAD, or subtract them (sign -1)."""
        cdef double* g = self.shared + c * self.globals
        cdef double h = self.variance(slot, c)
        g[MASS] += sign * (fabs(at(self, slot, c)[W] * g[SCALE]) * h)
        g[SPREAD] += sign * h

    cdef void truncate(self, Py_ssize_t known, int c) noexcept nogil:
        """Scale the weights until their mean size by variance is at most lam, then keep the largest, a share B."""
        cdef double* g = self.shared + c * self.globals
        if self.by_column and self.space.indicators:
            self.sum_up(c)
        if g[SPREAD] > 0.0 and g[MASS] > self.lam * g[SPREAD]:
            self.scale_weights(c, self.lam * g[SPREAD] / g[MASS])
            g[MASS] = self.lam * g[SPREAD]
        self.keep_largest(<Py_ssize_t> (self.B * known), c)
