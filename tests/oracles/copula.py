"""The online Gaussian copula from its equations: full matrices, sorted copies, one row at a time."""

import numpy as np
from scipy.special import ndtr, ndtri


class PlainMarginal:
    """Window of the last W values of a feature."""

    def __init__(self, W, levels, zeros=0):
        self.W, self.levels, self.values = W, levels, [0.0] * min(zeros, W)

    def joined(self, x):
        return [*self.values, x][-self.W :]

    def commit(self, x):
        self.values = self.joined(x)

    def place(self, x):
        """Return (z, None) of a continuous value, (z, (a, b)) of an ordinal one."""
        window = np.array(self.joined(x))
        n, L, Q = len(window), (window < x).sum(), (window == x).sum()
        if len({*self.values, x}) > self.levels:
            return ndtri((L + Q / 2 + 1 / 2) / (n + 1)), None
        a = ndtri(L / (n + 1)) if L else -np.inf
        b = ndtri((L + Q) / (n + 1)) if n > L + Q else np.inf
        return truncated(a, b, 0.0, 1.0)[0], (a, b)


def truncated(a, b, mu, s):
    """Return mean and variance of N(mu, s^2) in (a, b]; None if there is almost no mass."""
    alpha, beta = (a - mu) / s, (b - mu) / s
    Z = ndtr(beta) - ndtr(alpha) if alpha < 0 else ndtr(-alpha) - ndtr(-beta)
    if Z < 1e-6:
        return None
    phi = [np.exp(-t * t / 2) / np.sqrt(2 * np.pi) for t in (alpha, beta)]
    edges = [t * p if np.isfinite(t) else 0.0 for t, p in zip((alpha, beta), phi, strict=True)]
    r = (phi[0] - phi[1]) / Z
    return mu + s * r, s * s * max(0.0, 1 + (edges[0] - edges[1]) / Z - r * r)


class PlainCopula:
    """Gaussian copula; x maps names to values, ``groups`` maps a column to its indicator names."""

    def __init__(self, W=200, b=20, levels=14, sweeps=2, c=5.0, gamma_min=0.05, max_dense=512):
        self.W, self.b, self.levels, self.sweeps, self.c, self.gamma_min = W, b, levels, sweeps, c, gamma_min
        self.max_dense, self.t, self.observed, self.left = max_dense, 0, {}, []
        self.names, self.marginals, self.sigma = [], {}, np.zeros((0, 0))
        self.batch, self.k = [], 0
        self.columns, self.reference, self.seen = {}, {}, {}

    def activity(self, name):
        """Return the observations of a feature, discounted by age: to 1/e after ten windows."""
        return sum(np.exp((at - self.t) / (10 * self.W)) for at in self.observed[name])

    def rate(self, name):
        """Return the discounted share of instances that had the feature."""
        learned = sum(np.exp((at - self.t) / (10 * self.W)) for at in range(1, self.t + 1))
        return self.activity(name) / learned if name in self.observed else 0.0

    def swap(self, name):
        """Remove and return the least active feature (the latest of equals) if the new one is clearly more active."""
        weakest = min(reversed(self.names), key=self.activity)
        if self.activity(name) <= 1.5 * self.activity(weakest) + self.W / 10:
            return None
        for siblings in self.columns.values():
            if weakest in siblings:
                siblings.remove(weakest)
        del self.marginals[weakest]
        for _, seen in self.batch:
            seen.pop(weakest, None)
        return weakest

    def meet(self, x):
        """Add new features in the given order; at capacity, one may replace another."""
        self.t, self.left = self.t + 1, []
        for name in x:
            self.observed.setdefault(name, []).append(self.t)
        for name in x:
            column = name.split("=")[0] if "=" in str(name) else None
            if name in self.marginals or name in self.reference.values():
                continue
            if column is not None and column not in self.reference:
                self.reference[column] = name
                continue
            j, d = len(self.names), len(self.names)
            if d == self.max_dense:
                gone = None if self.left else self.swap(name)
                if gone is None:
                    continue
                self.left.append(gone)
                j = self.names.index(gone)
            zeros = 0
            if column is not None:
                self.columns.setdefault(column, []).append(name)
                zeros = self.seen.get(column, 0)
            self.names[j : j + 1] = [name]
            self.marginals[name] = PlainMarginal(self.W, self.levels, zeros)
            sigma = np.eye(max(d, j + 1))
            old = [i for i in range(d) if i != j]
            sigma[np.ix_(old, old)] = self.sigma[np.ix_(old, old)]
            self.sigma = sigma

    def spread_out(self, x):
        """Return the known features of x, with the observed zeros of its columns."""
        out = {}
        for name, value in x.items():
            column = name.split("=")[0] if "=" in str(name) else None
            for sibling in self.columns.get(column, []):
                out.setdefault(sibling, 0.0)
            if name in self.marginals:
                out[name] = value
        return out

    def e_step(self, x):
        """Return scores by name of all features, the variances, and the conditional covariance."""
        x = self.spread_out(x)
        d = len(self.names)
        there = [j for j in range(d) if self.names[j] in x]
        z, v, within = np.zeros(d), np.zeros(d), {}
        for j in there:
            z[j], interval = self.marginals[self.names[j]].place(x[self.names[j]])
            if interval is not None:
                within[j] = interval
        if not there:
            return z, self.sigma.copy(), x
        P = np.linalg.inv(self.sigma[np.ix_(there, there)] + 1e-6 * np.eye(len(there)))
        if len(there) == 1 and within:
            j = there[0]
            z[j], v[j] = truncated(*within[j], 0.0, 1.0)
        elif len(there) > 1:
            for _ in range(self.sweeps):
                Pz = P @ z[there]
                for i, j in enumerate(there):
                    if j in within:
                        s2 = 1 / P[i, i]
                        found = truncated(*within[j], z[j] - s2 * Pz[i], np.sqrt(s2))
                        if found is None:
                            v[j] = 0.0
                        else:
                            z[j], v[j] = found
        return (*self.complete({self.names[j]: (z[j], v[j]) for j in there}), x)

    def complete(self, seen):
        """Return the scores of all features and their covariance, from scores and variances of the observed ones."""
        d = len(self.names)
        there = [j for j in range(d) if self.names[j] in seen]
        gone = [j for j in range(d) if self.names[j] not in seen]
        z, v = np.zeros(d), np.zeros(d)
        for j in there:
            z[j], v[j] = seen[self.names[j]]
        P = np.linalg.inv(self.sigma[np.ix_(there, there)] + 1e-6 * np.eye(len(there)))
        J = P @ self.sigma[np.ix_(there, gone)]
        z[gone] = J.T @ z[there]
        C = np.zeros((d, d))
        V = np.diag(v[there])
        C[np.ix_(there, there)] = V
        C[np.ix_(gone, there)] = J.T @ V
        C[np.ix_(there, gone)] = V @ J
        C[np.ix_(gone, gone)] = self.sigma[np.ix_(gone, gone)] - J.T @ self.sigma[np.ix_(there, gone)] + J.T @ V @ J
        return z, C

    def scores(self, x):
        z, _, _ = self.e_step(x)
        return dict(zip(self.names, z.tolist(), strict=True))

    def learn(self, x, w=1.0, commit=True):
        """Return the scores under the correlation before the row; run the M-step if the batch is full."""
        self.meet(x)
        z, C, given = self.e_step(x)
        for name, value in given.items() if commit else ():
            self.marginals[name].commit(value)
        for column in {name.split("=")[0] for name in x if "=" in str(name)}:
            self.seen[column] = self.seen.get(column, 0) + 1
        scores = dict(zip(self.names, z.tolist(), strict=True))
        self.batch.append((w, {name: (z[j], C[j, j]) for j, name in enumerate(self.names) if name in given}))
        if len(self.batch) == self.b:
            self.m_step()
        return scores

    def step_sizes(self):
        """Return the step size of each row of the batch."""
        return [max(self.gamma_min, self.c / (self.k + self.c))] * len(self.batch)

    def m_step(self):
        d = len(self.names)
        A = np.zeros((d, d))
        total = sum(w for w, _ in self.batch)
        steps = self.step_sizes()
        for (w, seen), gamma in zip(self.batch, steps, strict=True):
            z, C = self.complete(seen)
            A += w / total * gamma * (np.outer(z, z) + C - self.sigma)
        A += self.sigma
        D = np.sqrt(np.maximum(np.diag(A), 1e-9))
        self.sigma = A / np.outer(D, D)
        self.batch, self.k = [], self.k + 1
