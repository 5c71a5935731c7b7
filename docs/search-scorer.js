// Order of the results of a search: pages that explain first, then the reference, by how well each matches.
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename]) =>
    docname.startsWith("reference/generated/") ? score - 30 : docname === "changelog" ? score - 40 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
