// The page asks for the chosen model's report once a second while it is visible, and listens to events.
import { COLOURS, lines, short, stacked, strip } from "./charts.js";

const $ = (id) => document.getElementById(id);
const PRESENCE = ["here", "new", "silent", "gone"];
const [model, device] = location.hash.slice(1).split("/").map(decodeURIComponent);
const chosen = { model: model || "", device: device || null, filter: null };
const rates = [];
let token = sessionStorage.getItem("token") || "";
let events = [];
let rows = new Map();

function element(name, text, attributes = {}) {
  const found = document.createElement(name);
  if (text !== undefined) found.textContent = text;
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  return found;
}

async function ask(path, options = {}) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const found = await fetch(path, { ...options, headers: { ...headers, ...options.headers } });
  if (found.status === 401 || found.status === 403) {
    $("login").hidden = false;
    throw new Error("token");
  }
  $("login").hidden = true;
  return found;
}

function link(state, text) {
  $("link").dataset.state = state;
  $("link").textContent = text;
}

// ---------------------------------------------------------------- models

function showModels(models, unrecovered) {
  const names = [...models.map((m) => m.name), ...Object.keys(unrecovered)];
  $("empty").hidden = names.length > 0;
  $("model").hidden = names.length === 0;
  $("base").textContent = location.origin;
  if (!names.includes(chosen.model)) chosen.model = names.length ? names[0] : "";
  $("models").replaceChildren(...models.map(modelCard), ...Object.keys(unrecovered).map(lostCard));
}

function card(name, ...content) {
  const found = element("button", undefined, { type: "button", "aria-pressed": name === chosen.model, "data-model": name });
  found.append(element("b", name), ...content);
  found.onclick = () => choose(name);
  return found;
}

function modelCard(model) {
  const kind = model.key ? `${model.method} per ${model.key}` : model.method;
  const content = [element("span", `${kind} · ${short(model.steps)} learned`)];
  if (model.stopped) content.push(element("span", " · stopped", { class: "stop" }));
  return card(model.name, ...content);
}

// A model that could not be recovered has nothing to show but the reason.
function lostCard(name) {
  return card(name, element("span", "could not be recovered", { class: "stop" }));
}

function showLost(reason) {
  $("model").toggleAttribute("data-lost", reason !== undefined);
  if (reason === undefined) return;
  $("stopped").hidden = false;
  $("stopped").textContent = reason;
}

function choose(name) {
  if (chosen.model !== name) {
    chosen.model = name;
    chosen.device = null;
    $("device").hidden = true;
    $("device-search").value = "";
    rates.length = 0;
    rows = new Map();
    $("map").replaceChildren();
    location.hash = encodeURIComponent(name);
  }
  if (!$("model").hasAttribute("data-lost")) explain();
  refresh();
}

// ---------------------------------------------------------------- numbers

function number(name, value, note = "", kind = "") {
  const box = element("div", undefined, { class: kind });
  const list = element("dl", undefined, { style: "margin:0" });
  list.append(element("dt", name), element("dd", value));
  box.append(list);
  if (note) box.append(element("small", note));
  return box;
}

function showNumbers(report) {
  const counts = Object.fromEntries(PRESENCE.map((p) => [p, 0]));
  for (const f of report.features) counts[f.presence] += 1;
  const { recent, usual, scored } = report.error;
  const detects = report.task === "detection";
  const high = scored > 50 && recent > usual + 3 * Math.sqrt(Math.max(usual * (1 - usual), .01) / 50);
  $("numbers").replaceChildren(
    number("instances", short(report.instances), `${short(report.throughput.instances)} per second`),
    number("learned", short(report.steps), detects ? "without labels" : `${short(report.throughput.labels)} labels per second`),
    errorNumber(report, high),
    ...(detects ? [] : [
      number("waiting for a label", short(report.waiting), report.expired ? `${short(report.expired)} expired` : "none expired"),
    ]),
    number("features here", short(counts.here + counts.new), counts.silent ? `${counts.silent} silent` : "none silent",
      counts.silent ? "warn" : ""),
  );
  $("stopped").hidden = !report.stopped;
  $("stopped").textContent = report.stopped || "";
}

// The error of a model that requests labels is estimated from those drawn at random, and so is its curve.
function errorNumber(report, high) {
  const { recent, usual, scored } = report.error;
  if (report.task === "detection") {
    return number("alarms now", scored ? percent(recent) : "–", scored ? `usually ${percent(usual)}` : "nothing scored yet", high ? "bad" : "");
  }
  const drawn = report.ask ? report.ask.estimate : null;
  if (drawn && drawn.labels) {
    return number("estimated error", percent(drawn.error),
      `${drawn.standard_error ? `± ${percent(drawn.standard_error)}` : "uncertainty not yet known"}${scored ? `; recently ${percent(recent)}` : ""}`, high ? "bad" : "");
  }
  return number("error now", scored ? percent(recent) : "–", scored ? `usually ${percent(usual)}` : "no label yet", high ? "bad" : "");
}

const percent = (v) => (v > 1 ? v.toPrecision(3) : (100 * v).toFixed(1) + "%");

// ---------------------------------------------------------------- presence

function showPresence(report) {
  const counts = Object.fromEntries(PRESENCE.map((p) => [p, 0]));
  for (const f of report.features) counts[f.presence] += 1;
  $("filters").replaceChildren(...PRESENCE.map((presence) => {
    const button = element("button", `${counts[presence]} ${presence}`, { type: "button", "data-filter": presence,
      "aria-pressed": chosen.filter === presence });
    button.onclick = () => { chosen.filter = chosen.filter === presence ? null : presence; showPresence(report); };
    return button;
  }));
  const style = getComputedStyle(document.documentElement);
  const names = new Set();
  for (const f of report.features) {
    if (chosen.filter && f.presence !== chosen.filter) continue;
    names.add(f.name);
    let row = rows.get(f.name);
    if (!row) {
      row = element("div", undefined, { class: "row" });
      row.append(element("span", f.name, { class: "name", title: f.name }), element("canvas"), element("span", "", { class: "state" }));
      rows.set(f.name, row);
    }
    if (!row.isConnected) $("map").append(row);
    row.dataset.presence = f.presence;
    row.dataset.feature = f.name;
    row.children[2].textContent = f.presence;
    row.children[1].title = `first at instance ${f.first.toLocaleString("en")}, last at ${f.last.toLocaleString("en")}`;
    strip(row.children[1], f.share, style.getPropertyValue(`--${f.presence}`).trim());
  }
  for (const [name, row] of rows) if (!names.has(name)) { row.remove(); rows.delete(name); }
}

// ---------------------------------------------------------------- requested labels

// The list stays as it is while a person works on it, so that no row moves under a finger: rows that have their label
// remain, and others come when all have theirs or on request.
const MOST_ASKED = 10;
const MOST_BUTTONS = 8;
const asked = { model: null, open: new Set() };

async function showAsked(report) {
  $("asking").hidden = !report.ask;
  if (!report.ask) return;
  const { budget, requested, decided, text } = report.ask;
  $("asking-note").textContent = `${requested.toLocaleString("en")} of ${decided.toLocaleString("en")} kept instances, budget ${percent(budget)}`;
  $("asking-estimate").textContent = text[0].toUpperCase() + text.slice(1) + ". The estimate uses the instances drawn at random.";
  if (asked.model !== chosen.model || asked.open.size === 0) await loadAsked();
}

async function loadAsked() {
  const model = chosen.model;
  const found = await ask(`models/${encodeURIComponent(model)}/ask?most=${MOST_ASKED}`);
  if (!found.ok || model !== chosen.model) return;
  const { instances, labels } = await found.json();
  if (asked.model === model && !instances.length && !asked.open.size) return;
  asked.model = model;
  asked.open = new Set(instances.map((one) => one.id));
  $("asking-none").hidden = instances.length > 0;
  $("asking-more").hidden = instances.length === 0;
  $("asking-list").replaceChildren(...instances.map((one) => askedRow(one, labels)));
}

function askedRow(one, labels) {
  const row = element("li", undefined, { "data-id": one.id });
  const who = [one.key, one.name].filter((part) => part !== null).join(" · ");
  const head = element("p", undefined, { class: "asked-head" });
  head.append(element("b", who || one.id), element("span", age(one.time)));
  const chance = probability(one);
  head.append(element("span", one.label === null ? "no prediction yet" : `predicted ${one.label}` +
    (chance === undefined ? "" : ` (${percent(chance)})`)));
  if (one.drawn) head.append(element("span", "for the estimate", { title: "Requested whatever its worth: the error is estimated from these." }));
  const values = element("p", undefined, { class: "asked-values" });
  for (const [name, value] of Object.entries(one.x)) {
    if (value !== null) values.append(element("span", `${name} ${typeof value === "number" ? Number(value.toPrecision(6)) : value}`));
  }
  const buttons = element("div", undefined, { class: "asked-labels", role: "group", "aria-label": "Label" });
  for (const label of labels.slice(0, MOST_BUTTONS)) {
    const button = element("button", String(label), { type: "button", "data-label": String(label) });
    button.onclick = () => sendLabel(row, one, label);
    buttons.append(button);
  }
  const form = otherLabel(row, one, labels);
  const other = element("button", "Other…", { type: "button", class: "other" });
  other.onclick = () => { other.replaceWith(form); form.querySelector("input").focus(); };
  buttons.append(labels.length ? other : form, element("p", "", { class: "asked-done", role: "status" }));
  row.append(head, values, buttons);
  return row;
}

function probability(prediction) {
  const shares = prediction.probabilities; // pairs where two labels have one name
  return Array.isArray(shares) ? shares.find(([label]) => label === prediction.label)?.[1] : shares?.[prediction.label];
}

function otherLabel(row, one, labels) {
  const form = element("form");
  const input = element("input", undefined, { placeholder: "other label", "aria-label": "Other label", required: "" });
  form.append(input, element("button", "Send"));
  form.onsubmit = (event) => {
    event.preventDefault();
    const text = input.value.trim();
    const kinds = new Set(labels.map((label) => typeof label));
    const isNumber = kinds.size === 1 && kinds.has("number") && text !== "" && Number.isFinite(Number(text));
    if (text) sendLabel(row, one, isNumber ? Number(text) : text);
  };
  return form;
}

async function sendLabel(row, one, label) {
  const done = row.querySelector(".asked-done");
  const controls = row.querySelectorAll("button, input");
  for (const control of controls) control.disabled = true;
  let failed = null;
  try {
    const body = JSON.stringify({ id: one.id, y: label, ...(one.key === null ? {} : { key: one.key }) });
    const found = await ask(`models/${encodeURIComponent(asked.model)}/labels`, { method: "POST", body });
    if (!found.ok) failed = (await found.json()).error;
    if (found.ok || found.status === 409 || found.status === 410) asked.open.delete(one.id);
  } catch (error) {
    failed = error.message === "token" ? "a token that may write is needed" : "no connection; try again";
  }
  if (failed !== null && asked.open.has(one.id)) for (const control of controls) control.disabled = false;
  row.querySelector(".other")?.toggleAttribute("hidden", failed === null); // the row keeps its height
  row.dataset.state = failed === null ? "done" : "failed";
  done.textContent = failed === null ? `learned: ${label}` : failed;
}

$("asking-more").onclick = () => loadAsked();

// ---------------------------------------------------------------- devices

const STATUS = { silent: "silent", error: "high error", sensor: "sensor silent", ok: "ok" };
const MOST_DEVICES = 200;

function age(time) {
  const seconds = Math.max(0, (Date.now() - time) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

const delay = (ms) => (ms === null ? "–" : ms < 1000 ? `${Math.round(ms)} ms` : ms < 90000 ? `${short(ms / 1000)} s` : `${short(ms / 60000)} min`);
const score = (value) => (value === null ? "–" : percent(value));

function chooseDevice(key) {
  chosen.device = key;
  location.hash = encodeURIComponent(chosen.model) + (key === null ? "" : `/${encodeURIComponent(key)}`);
  $("device").hidden = key === null;
  refresh();
}

function deviceRow(one) {
  const row = element("tr", undefined, { "data-status": one.status, "data-device": one.key });
  const name = element("button", String(one.key), { type: "button", class: "plain" });
  name.onclick = () => chooseDevice(String(one.key));
  const first = element("td");
  first.append(name);
  const sensors = one.silent_sensors.length ? `: ${one.silent_sensors.slice(0, 3).join(", ")}` : "";
  row.append(first, element("td", STATUS[one.status] + (one.status === "sensor" ? sensors : ""), { class: "status" }),
    element("td", score(one.error)), element("td", age(one.last)), element("td", short(one.per_second)),
    element("td", delay(one.label_delay)), element("td", short(one.labels)));
  return row;
}

async function showDevices(report) {
  $("devices").hidden = !report.devices;
  if (!report.devices) { $("device").hidden = true; return; }
  const base = `models/${encodeURIComponent(chosen.model)}`;
  const search = encodeURIComponent($("device-search").value.trim());
  const found = await (await ask(`${base}/devices?limit=${MOST_DEVICES}&search=${search}`)).json();
  const total = Object.values(found.counts).reduce((a, b) => a + b, 0);
  const trouble = Object.entries(found.counts).filter(([status, n]) => n && status !== "ok");
  $("device-counts").textContent = `${total.toLocaleString("en")} devices` +
    (trouble.length ? ", " + trouble.map(([status, n]) => `${n.toLocaleString("en")} ${STATUS[status]}`).join(", ") : ", none in trouble");
  $("device-list").replaceChildren(...found.devices.map(deviceRow));
  $("device-more").textContent = found.devices.length === MOST_DEVICES ? `The first ${MOST_DEVICES}, those in trouble first; search for others.` : "";
  await showDevice(base);
}

async function showDevice(base) {
  $("device").hidden = chosen.device === null;
  if (chosen.device === null) return;
  const answer = await ask(`${base}/report?key=${encodeURIComponent(chosen.device)}`);
  const found = await answer.json();
  $("device-name").textContent = answer.ok ? `${found.key}: ${STATUS[found.status]}` : found.error;
  if (!answer.ok) { $("device-facts").replaceChildren(); return; }
  const facts = { "instances": short(found.instances), "learned": short(found.steps), "last seen": age(found.last),
    "per second": short(found.per_second), "error now": score(found.error), "usual error": score(found.usual_error),
    "label delay": delay(found.label_delay), "last prediction": found.prediction === null ? "–" : String(found.prediction) };
  $("device-facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const box = element("div");
    box.append(element("dt", name), element("dd", value));
    return box;
  }));
  $("device-sensors").replaceChildren(...found.features.map((f) => element("span", `${f.name} ${percent(f.share)}`,
    { class: "sensor", "data-presence": f.presence, title: `${f.presence}; last at instance ${f.last} of ${found.instances}` })));
  $("device-events").replaceChildren(...found.events.slice(-8).reverse().map((e) =>
    element("li", `${new Date(e.time).toLocaleTimeString()} ${e.text}`)));
}

$("device-search").oninput = () => refresh();
$("device-close").onclick = () => chooseDevice(null);

// ---------------------------------------------------------------- charts

function showCharts(report) {
  const curve = report.error.curve;
  const detects = report.task === "detection";
  $("error-title").textContent = detects ? "Share of alarms over time" : "Error over time";
  const most = Math.max(0, ...curve.map((p) => p[1]));
  lines($("error-chart"), [{ points: curve, kind: "curve", fill: true }],
    { percent: most <= 1, least: 0.05, level: report.error.scored ? report.error.usual : null, label: (v) => `instance ${short(v)}` });
  const drawn = report.ask ? ", only those drawn at random" : "";
  $("error-note").textContent = !report.error.scored ? "" : `${short(report.error.scored)} ${detects ? "instances" : "predictions"} scored${drawn}`;
  if (report.throughput.instances !== null) rates.push([Date.now(), report.throughput.instances, report.throughput.labels]);
  if (rates.length > 120) rates.shift();
  const clock = (v) => new Date(v).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  lines($("rate-chart"), [{ points: rates.map((r) => [r[0], r[1]]), kind: "curve", fill: true },
    ...(detects ? [] : [{ points: rates.map((r) => [r[0], r[2]]), kind: "second" }])], { least: 1, label: clock });
  $("rate-note").textContent = detects ? "instances per second" : "instances, and labels (dashed), per second";
  const experts = report.experts;
  $("experts").hidden = !experts || experts.steps.length < 2;
  if (!$("experts").hidden) showExperts(experts);
}

const SHOWN = 8;

// The latest record of each kind and expert or feature, so that one that comes often does not hide the others.
function latestOfEach(records) {
  const found = new Map();
  for (const r of [...records].sort((a, b) => a.step - b.step)) found.set(`${r.what} ${r.expert ?? ""} ${r.feature ?? ""}`, r);
  return [...found.values()].sort((a, b) => b.step - a.step);
}

function showExperts(experts) {
  stacked($("experts-chart"), experts.steps, experts.weights, experts.drifts.map((d) => d.step));
  const latest = latestOfEach([...experts.drifts, ...experts.changes]).slice(0, SHOWN);
  $("drift-list").replaceChildren(...latest.map((found) => element("li", found.text, { "data-what": found.what })));
  const names = Object.keys(experts.now).filter((name) => experts.now[name] > 0);
  const order = names.map((_, k) => k).sort((a, b) => experts.now[names[b]] - experts.now[names[a]]);
  $("experts-legend").replaceChildren(...order.map((k) => {
    const item = element("li");
    const mark = element("i");
    mark.style.background = COLOURS[Object.keys(experts.now).indexOf(names[k]) % COLOURS.length];
    item.append(mark, names[k], element("b", percent(experts.now[names[k]])));
    return item;
  }));
}

// ---------------------------------------------------------------- the last prediction

async function explain() {
  if (!chosen.model) return;
  const found = await ask(`models/${encodeURIComponent(chosen.model)}/explain`, { method: "POST" });
  const body = await found.json();
  if (!found.ok) {
    $("explanation").replaceChildren(element("p", body.error, { class: "hint" }));
    return;
  }
  const chance = probability(body);
  const detects = "p_value" in body;
  const verdict = element("p", detects ? (body.anomaly ? "anomaly" : "usual") : String(body.label), { class: "verdict" });
  if (detects) verdict.append(element("small", `score ${body.score.toPrecision(3)}, p-value ${body.p_value.toPrecision(2)}`));
  if (chance !== undefined) verdict.append(element("small", `probability ${percent(chance)}`));
  const parts = Object.entries(body.contributions).slice(0, 12);
  const largest = Math.max(...parts.map((p) => Math.abs(p[1])), 1e-12);
  const bars = element("div", undefined, { class: "bars" });
  for (const [name, part] of parts) {
    const given = body.x[name];
    const bar = element("span", undefined, { class: "bar" });
    const size = 50 * Math.abs(part) / largest;
    const mark = element("i", undefined, { class: part < 0 ? "against" : "for" });
    mark.style.left = part < 0 ? `${50 - size}%` : "50%";
    mark.style.width = `${size}%`;
    bar.append(mark);
    bars.append(element("span", typeof given === "number" ? `${name} = ${short(given)}` : name, { class: "name", title: name }),
      bar, element("span", (part < 0 ? "−" : "+") + Math.abs(part).toPrecision(2), { class: "value" }));
  }
  $("explanation").replaceChildren(verdict, bars);
}

// ---------------------------------------------------------------- events

const WORDS = { "feature-silent": "silent", "feature-new": "new", "feature-gone": "gone", "feature-back": "back",
  "device-silent": "device", "device-back": "device", "device-error": "device", "device-error-normal": "device",
  "sensor-silent": "sensor", "sensor-back": "sensor", "error-high": "error", "anomaly": "anomaly", "error-normal": "error", "labels-dropped": "labels", "labels-back": "labels" };

function showEvents() {
  const mine = events.filter((e) => e.model === chosen.model).slice(-60).reverse();
  $("no-events").hidden = mine.length > 0;
  $("event-list").replaceChildren(...mine.map((event) => {
    const item = element("li", undefined, { class: event.kind });
    const when = new Date(event.time);
    item.append(element("time", when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }),
      { datetime: when.toISOString() }));
    const text = element("span");
    text.append(element("em", WORDS[event.kind] || event.kind), event.text);
    item.append(text);
    return item;
  }));
}

async function listen() {
  for (;;) {
    try {
      const since = events.length ? events[events.length - 1].number : 0;
      const reader = (await ask(`events?since=${since}`)).body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "";;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const data = part.split("\n").find((line) => line.startsWith("data: "));
          if (data) events.push(JSON.parse(data.slice(6)));
        }
        events = events.slice(-500);
        showEvents();
      }
    } catch (error) {
      events = [];
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

// ---------------------------------------------------------------- the rhythm

async function refresh() {
  try {
    const { models, unrecovered } = await (await ask("models")).json();
    showModels(models, unrecovered);
    showLost(unrecovered[chosen.model]);
    if (chosen.model in unrecovered) {
      showEvents();
    } else if (chosen.model) {
      const found = await ask(`models/${encodeURIComponent(chosen.model)}/report`);
      if (found.ok) {
        const report = await found.json();
        showNumbers(report);
        await showAsked(report);
        await showDevices(report);
        showPresence(report);
        showCharts(report);
        showEvents();
      }
    }
    link("live", "live");
  } catch (error) {
    link("lost", error.message === "token" ? "a token is needed" : "no connection");
  }
}

$("login").onsubmit = (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem("token", token);
  refresh();
};
$("explain").onclick = explain;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
addEventListener("resize", refresh);
setInterval(() => { if (!document.hidden) refresh(); }, 1000);
refresh();
listen();
