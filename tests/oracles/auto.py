"""Temperatures, stack, mixture and guard of `AutoClassifier` in NumPy, from the experts' probabilities."""

import numpy as np

from tests.oracles.lateness import lateness_ratio


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


class Combination:
    """Combination for labels that are all known; `starts` has temperature, stack weight and its variance by expert.

    `counting` are the experts whose probabilities contain the shares of the labels.
    """

    share, eta, drift, temperature_drift, floor, guard, full = 0.01, 0.5, 1e-5, 1e-4, 1e-3, 1.5, 50.0

    def __init__(self, starts, classes, counting):
        self.k = k = len(starts)
        temperatures, weights, variances = np.array(starts).T
        self.classes = classes
        self.counting = np.array(counting)
        self.a = np.array(temperatures, dtype=float)
        self.variance = np.full(k, 0.1)
        self.mean = np.r_[weights, np.zeros(classes)]
        self.prior = np.r_[variances, np.full(classes, 0.05)]
        self.cov = np.diag(self.prior)
        self.fast = self.slow = self.weights = np.r_[np.ones(k), 4.0] / (k + 4)
        self.pace = np.array([0.5, 0.5])  # weights of the mixtures with fast and with slow weights
        self.final = [1.0, 0.1, 0.1]  # final temperature, its variance, and that at the start
        self.counts = np.zeros(classes)
        self.new_odds, self.last = -5.0, -1  # log-odds of treating a label learned once like the others; label before
        self.right_lead = self.loss_lead = self.behind = 0.0
        self.unjudged = 0.0  # weight of labels by which no prediction was judged, or in part only
        self.late = np.array([0.5, 0.5])  # weights of the mixture and of the labels' shares
        self.lates = []  # (lag, error by label) of the labels that came late

    def predict(self, probabilities):
        """Return the output for these probabilities by expert and label; NaN for an expert that does not contribute."""
        self.absent = np.r_[np.isnan(probabilities[:, 0]), False]
        known = np.where(np.isnan(probabilities), 1.0, probabilities)
        logits = np.log(np.maximum(known, np.exp(-16) * known.max(axis=1, keepdims=True)))
        self.logits = logits - logits.mean(axis=1, keepdims=True)
        self.members = np.array([softmax(a * row) for a, row in zip(self.a, self.logits, strict=True)])
        inputs = np.hstack([self.logits.T, np.eye(self.classes)])
        self.members = np.vstack([self.members, softmax(inputs @ self.mean)])
        self.weights = self.pace @ np.array([self.fast, self.slow])
        weights = np.where(self.absent, 0.0, self.weights)
        self.mixed = (1 - self.floor) * (weights / weights.sum() @ self.members) + self.floor / self.classes
        self.treatments = np.ones((2, self.classes))
        new = self.counts < 2  # labels learned once: at temperature 1, by the experts that count labels
        if new.any() and not new.all():
            weights = np.where(self.counting, weights[:-1], 0.0)
            counted = weights / weights.sum() @ np.array([softmax(row) for row in self.logits])
            counted = (1 - self.floor) * counted + self.floor / self.classes
            rest = (1 - counted[new].sum()) / self.mixed[~new].sum()
            self.treatments = np.array([self.mixed, np.where(new, counted, rest * self.mixed)])
            self.mixed = np.array([1.0, np.exp(-self.new_odds)]) / (1 + np.exp(-self.new_odds)) @ self.treatments
        self.experts_mixed = self.mixed
        if self.lates:
            self.mixed = self.late @ np.array([self.mixed, self.base_rates()])
        logits = np.log(self.mixed)
        self.mixed_logits = logits - logits.mean()
        self.sharp = softmax(self.final[0] * self.mixed_logits)
        output = self.sharp.copy()
        best, common = output.argmax(), self.counts.argmax()
        shares = self.shares()
        required = 1 + 0.5 * max(self.behind, 0)
        unproven = max(self.right_lead, self.loss_lead) < 2 + max(self.behind, 0)
        lead = self.guard * required * (shares[common] - shares[best])
        lead *= min(max(self.counts.sum() - self.unjudged, 0) / self.full, 1)
        if unproven and best != common and self.sharp[best] - self.sharp[common] < lead:
            both = self.sharp[best] + self.sharp[common]
            output[common], output[best] = 0.51 * both, 0.49 * both
        self.output = output
        return output

    def shares(self):
        return (self.counts + 0.5) / (self.counts.sum() + 0.5 * self.classes)

    def base_rates(self):
        return (1 - self.floor) * self.counts / self.counts.sum() + self.floor / self.classes

    def learn(self, probabilities, y, lag=0, issued=None):
        """Learn label y of these probabilities, after which `lag` labels were learned.

        `issued` is what the stack and the mixture of experts and stack predicted then; by default, what they do now.
        """
        self.predict(probabilities)
        issued_stack, issued_mixture = issued or (self.members[-1], self.experts_mixed)
        hit = np.eye(self.classes)[y]
        w = 1.0
        if lag:
            self.lates.append((lag, hit - self.mixed))
            w = 1 / lateness_ratio(self.lates)
            self.unjudged += 1 - w
            both = -np.log([issued_mixture[y], self.base_rates()[y]])
            self.late = self.shared(self.late, both, 0.001, w)
        judged = np.vstack([self.members[:-1], issued_stack])
        losses = -np.log((1 - self.floor) * judged[:, y] + self.floor / self.classes)
        losses[self.absent] = -np.log(self.mixed[y])
        # the stack: add the drift, add the Fisher information, step along the gradient
        q = self.members[-1]
        inputs = np.hstack([self.logits.T, np.eye(self.classes)])
        np.fill_diagonal(self.cov, np.minimum(np.diag(self.cov) + self.drift, self.prior))
        information = inputs.T @ (np.diag(q) - np.outer(q, q)) @ inputs
        self.cov = np.linalg.inv(np.linalg.inv(self.cov) + w * information)
        self.mean = np.clip(self.mean - self.cov @ (inputs.T @ (q - hit)) * w, -20, 20)
        for e in range(self.k):
            start = (self.a[e], self.variance[e], 0.1)
            self.a[e], self.variance[e], _ = self.updated(
                start, self.members[e], self.logits[e], hit, w, self.temperature_drift
            )
        self.final = self.updated(self.final, self.sharp, self.mixed_logits, hit, w, self.drift)
        present = ~self.absent
        both = np.array([w[present] @ self.members[present, y] / w[present].sum() for w in (self.fast, self.slow)])
        self.pace = self.shared(self.pace, -np.log((1 - self.floor) * both + self.floor / self.classes), 0.001, w)
        self.fast = self.shared(self.fast, losses, self.share, w)
        self.slow = self.shared(self.slow, losses, 0.001, w)
        best, common = self.sharp.argmax(), self.counts.argmax()
        self.behind += w * (int(y == common) - int(y == self.output.argmax()))
        self.right_lead = max(self.right_lead + w * (int(y == best) - int(y == common)), -10)
        self.loss_lead = max(self.loss_lead + w * np.log(self.sharp[y] / self.shares()[y]), -10)
        known, counted = self.treatments[:, y]
        self.new_odds = float(np.clip(self.new_odds + w * np.log(known / counted), -5, 5))
        if y != self.last:
            self.new_odds += (-5 - self.new_odds) / 50
        self.last = y
        self.counts[y] += 1
        return losses

    def shared(self, weights, losses, share, w):
        """Return exponential weights after these losses, with a part of them shared out evenly."""
        v = weights * np.exp(-self.eta * w * losses)
        return share / len(v) + (1 - share) * v / v.sum()

    def updated(self, temperature, q, row, hit, w, drift):
        """Return a temperature (factor, variance, first variance) after one more label."""
        a, variance, prior = temperature
        spread = max(q @ row**2 - (q @ row) ** 2, 0.0)
        variance = 1 / (1 / min(variance + drift, prior) + w * spread)
        return [float(np.clip(a - variance * w * ((q - hit) @ row), 0.05, 20)), variance, prior]
