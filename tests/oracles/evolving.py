"""FESL, PAFE, CWFE and their parts with a known switch, directly from the equations: every row kept, pinv."""

import copy
import math

import numpy as np

ONE = "the intercept"


class Linear:
    """Linear model with one weight per name; subclasses define the update."""

    def __init__(self):
        self.w = {}
        self.t = 0

    def score(self, x):
        return sum(self.w.get(name, 0.0) * value for name, value in x.items())

    def negate(self):
        self.w = {name: -w for name, w in self.w.items()}

    def move(self, x, step):
        for name, value in x.items():
            self.w[name] = self.w.get(name, 0.0) + step * value


class OGD(Linear):
    def __init__(self, c=1.0):
        super().__init__()
        self.c = c

    def learn(self, x, y, w):
        self.t += 1
        slope = 1.0 / (1.0 + math.exp(y * self.score(x)))
        self.move(x, w * y * slope / math.log(2.0) / (self.c * math.sqrt(self.t)))


class PA(Linear):
    def __init__(self, C=0.1):
        super().__init__()
        self.C = C

    def learn(self, x, y, w):
        loss, norm = 1.0 - y * self.score(x), sum(v * v for v in x.values())
        if loss > 0.0 and norm > 0.0:
            self.move(x, y * min(self.C * w, loss / norm))


class AROW(Linear):
    """AROW with the mean in `w` and the covariance as a matrix over the names seen."""

    def __init__(self, r=3.0, full=True):
        super().__init__()
        self.r, self.full, self.names, self.sigma = r, full, [], np.zeros((0, 0))

    def learn(self, x, y, w):
        for name in x:
            if name not in self.names:
                self.names.append(name)
                n = len(self.names)
                wider = np.eye(n)
                wider[: n - 1, : n - 1] = self.sigma
                self.sigma = wider
        loss = 1.0 - y * self.score(x)
        if loss <= 0.0:
            return
        v = np.array([x.get(name, 0.0) for name in self.names])
        u = self.sigma @ v
        beta = 1.0 / (v @ u + self.r / w)
        for name, step in zip(self.names, beta * loss * y * u, strict=True):
            self.w[name] = self.w.get(name, 0.0) + step
        if self.full:
            self.sigma = self.sigma - beta * np.outer(u, u)
        else:
            self.sigma = np.diag(1.0 / (1.0 / np.diag(self.sigma) + v * v * w / self.r))


class Map:
    """Map x_old = base + (x_new - mean) M, fitted on weighted rows with both spaces."""

    def __init__(self, rows, centred, spread, ridge):
        self.inputs = list(dict.fromkeys(name for new, _, _ in rows for name in new))
        self.outputs = list(dict.fromkeys(name for _, old, _ in rows for name in old))
        w = np.array([w for _, _, w in rows])
        A = self.filled([new for new, _, _ in rows], self.inputs, w, centred, centred)
        Y = self.filled([old for _, old, _ in rows], self.outputs, w, centred, False)
        self.mean = w @ A / w.sum() if centred else np.zeros(A.shape[1])
        self.base = w @ Y / w.sum() if centred else np.zeros(Y.shape[1])
        root = np.sqrt(w)[:, None]
        A, Y = root * (A - self.mean), root * (Y - self.base)
        norm = np.sqrt((A**2).sum(0) / (w.sum() if centred else len(w)))
        norm[norm <= 1e-9 * abs(self.mean)] = 0.0
        self.unit = norm if spread else np.where(norm > 0, 1.0, 0.0)
        A = np.divide(A, self.unit, out=np.zeros_like(A), where=self.unit > 0)
        if ridge:
            A = np.vstack([A, math.sqrt(ridge) * np.eye(A.shape[1])])
            Y = np.vstack([Y, np.zeros((A.shape[1], Y.shape[1]))])
        Z = np.linalg.pinv(A, rcond=1e-11) @ Y
        self.M = np.divide(Z, self.unit[:, None], out=np.zeros_like(Z), where=self.unit[:, None] > 0)
        self.unit[self.unit == 0] = 1.0

    @staticmethod
    def filled(rows, names, w, centred, backwards):
        """Return a table of the rows; an absent cell is its column's mean so far, or its first value before any."""
        table = np.zeros((len(rows), len(names)))
        for j, name in enumerate(names):
            first = next(i for i, row in enumerate(rows) if name in row)
            for i, row in enumerate(rows):
                if name in row:
                    table[i, j] = row[name]
                elif centred and i > first:
                    table[i, j] = w[:i] @ table[:i, j] / w[:i].sum()
                elif backwards:
                    table[i, j] = rows[first][name]
        return table

    def recover(self, raw):
        d = np.array([raw[n] - m if n in raw else 0.0 for n, m in zip(self.inputs, self.mean, strict=True)])
        return dict(zip(self.outputs, self.base + d @ self.M, strict=True))


class Evolving:
    """One or two models per problem around the known switch after T1 learns, B of which show both spaces."""

    def __init__(
        self,
        make,
        part,
        T1,
        B,
        *,
        centred,
        spread,
        loss="hinge",
        transfer=False,
        horizon=None,
        ridge=0.0,
        bound=0.0,
        draw=None,
    ):
        self.make, self.part, self.T1, self.B, self.loss = make, part, T1, B, loss
        self.centred, self.spread, self.transfer, self.horizon = centred, spread, transfer, horizon
        self.ridge, self.bound, self.draw = ridge, bound, draw
        self.labels, self.old, self.new = [], [make()], None
        self.settled, self.joined, self.rows, self.map = {ONE}, set(), [], None
        self.step, self.t = 0, 1
        self.L, self.a = np.zeros(2), np.full(2, 0.5)

    def meet(self, y):
        if y in self.labels:
            return
        self.labels.append(y)
        for models in (self.old, self.new):
            if models is None or len(self.labels) < 3:
                continue
            if len(self.labels) == 3:
                models.insert(0, copy.deepcopy(models[0]))
                models[0].negate()
            models.append(self.make())

    # ------------------------------------------------------------------ inputs of a model

    def seen_by_old(self, x, raw):
        seen = {name: value for name, value in x.items() if name in self.settled}
        if self.map is not None:
            for name, value in self.map.recover(raw).items():
                if name not in x:
                    seen[name] = float(np.clip(value, -self.bound, self.bound)) if self.bound else value
        return seen

    def rates(self):
        T = self.horizon or self.t
        if self.part == "c":
            return math.sqrt(8 * math.log(2) / T), 0.0
        d = 1 / (T - 1) if self.horizon else 1 / (T + 1)
        H = -d * math.log(d) - (1 - d) * math.log(1 - d)
        return math.sqrt(8 / T * (2 * math.log(2) + (T - 1) * H)), d

    def weights(self):
        if self.new is None:
            return 1.0, 0.0
        if self.part == "c":
            v = np.exp(-self.rates()[0] * (self.L - self.L.min()))
            return v / v.sum()
        a = self.a / self.a.sum()
        old = self.draw(self.step) < a[0] if self.draw else a[0] >= a[1]
        return (1.0, 0.0) if old else (0.0, 1.0)

    def scores(self, x, raw):
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        a = self.weights()
        seen = self.seen_by_old(x, raw) if self.old is not None else {}
        found = np.zeros(len(self.old or self.new))
        if a[0]:
            found += a[0] * np.array([m.score(seen) for m in self.old])
        if a[1]:
            found += a[1] * np.array([m.score(x) for m in self.new])
        found = [-found[0], found[0]] if len(found) == 1 else found
        return dict(zip(self.labels, found, strict=True))

    # ------------------------------------------------------------------ learning

    def signs(self, y):
        if len(self.old) == 1:
            return [1.0 if self.labels.index(y) == 1 else -1.0]
        return [1.0 if y == label else -1.0 for label in self.labels]

    def mean_loss(self, models, x, y):
        margins = [s * m.score(x) for s, m in zip(self.signs(y), models, strict=True)]
        if self.loss == "hinge":
            return float(np.mean([max(0.0, 1.0 - m) for m in margins]))
        return float(np.mean([np.logaddexp(0.0, -m) / math.log(2.0) for m in margins]))

    def learn(self, x, raw, y, w):
        """Learn x, which is scaled and has the intercept; raw is unscaled, without it."""
        for name in raw:
            if name not in self.settled and name not in self.joined:
                (self.joined if self.T1 - self.B <= self.step < self.T1 else self.settled).add(name)
        seen = self.seen_by_old(x, raw) if self.step < self.T1 or self.part != "new" else x
        if self.T1 - self.B <= self.step < self.T1:
            new = {name: value for name, value in raw.items() if name in self.joined}
            self.rows.append((new, {name: value for name, value in seen.items() if name != ONE}, w))
        losses = [0.0, 0.0]
        if self.new is not None:
            losses = [self.mean_loss(self.old, seen, y), self.mean_loss(self.new, x, y)]
        if not (self.part == "frozen" and self.map is not None):
            for sign, model in zip(self.signs(y), self.old, strict=True):
                model.learn(seen, sign, w)
        if self.new is not None:
            for sign, model in zip(self.signs(y), self.new, strict=True):
                model.learn(x, sign, w)
            eta, d = self.rates()
            v = self.a * np.exp(-eta * w * np.array(losses))
            self.a = d / 2 * v.sum() + (1 - d) * v
            self.a /= self.a.sum()
            self.L += w * np.array(losses)
            self.t += 1
        self.step += 1
        if self.step == self.T1:
            self.switch()

    def switch(self):
        if any(new for new, _, _ in self.rows):
            self.map = Map(self.rows, self.centred, self.spread, self.ridge)
        fresh = [self.make() for _ in self.old]
        if self.transfer and self.map is not None:
            for giver, taker in zip(self.old, fresh, strict=True):
                w1 = np.array([giver.w.get(name, 0.0) for name in self.map.outputs])
                taker.w = dict(zip(self.map.inputs, self.map.unit * (self.map.M @ w1), strict=True))
                taker.w[ONE] = giver.w.get(ONE, 0.0) + self.map.base @ w1
        for model in self.old:
            model.t = 0
        if self.part == "new" or self.map is None:
            self.old, self.map = fresh, None
            self.settled |= self.joined
        elif self.part in ("c", "s"):
            self.new = fresh


class SquareOGD(Linear):
    """Gradient descent on (y - f)^2, with steps limited to where the error vanishes."""

    def __init__(self, c=1.0):
        super().__init__()
        self.c = c

    def learn(self, x, y, w):
        self.t += 1
        norm = sum(v * v for v in x.values())
        rate = 2.0 * w / (self.c * math.sqrt(self.t))
        self.move(x, (min(rate, 1.0 / norm) if norm else rate) * (y - self.score(x)))


class EvolvingRegression(Evolving):
    """FESL for regression: the models learn deviations from the mean of the targets so far."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.labels, self.targets = ["below", "above"], []

    def moments(self):
        y, w = np.array(self.targets).T
        mean = np.average(y, weights=w)
        return float(mean), math.sqrt(np.average((y - mean) ** 2, weights=w))

    def predict(self, x, raw):
        return self.moments()[0] + self.scores(x, raw)["above"]

    def signs(self, y):
        return [y - self.moments()[0]]

    def mean_loss(self, models, x, y):
        mean, deviation = self.moments()
        return min(((y - mean - models[0].score(x)) / (2.0 * deviation)) ** 2, 1.0) if deviation else 0.0
