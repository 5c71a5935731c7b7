// Order of the results of a search: pages that explain first, then the reference, by how well each matches.
const behind = { "reference/command-line": 10, "reference/generated": 30, changelog: 40 };
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename]) =>
    score - (behind[docname.split("/").slice(0, 2).join("/")] || 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
