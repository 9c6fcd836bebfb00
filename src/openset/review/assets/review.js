// The page's moves. Every answer is saved by the server before the next row appears.
import { $, content, counted, finding, make, measure, neighbour, percent, tile } from "/show.js";

const stored = (name, value) => localStorage.getItem("openset-review-" + name) ?? value;
const store = (name, value) => localStorage.setItem("openset-review-" + name, value);
const state = { queue: stored("queue", "estimate"), row: null, overview: null, busy: false, group: 0, audit: null };

history.replaceState(null, "", location.pathname); // the token leaves the address once the cookie has it

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ annotator: who(), ...body }) };
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Nothing that was saved is lost: start “openset review” again and open its address.");
  }
  if (reply.ok) return reply.json();
  if (reply.headers.get("content-type") === "application/json") throw new Error((await reply.json()).error);
  throw new Error(await reply.text());
}

// One move at a time: a key pressed before the next row is shown would answer a row that nobody saw.
async function move(action) {
  if (state.busy) return;
  state.busy = true;
  try {
    await action();
    $("trouble").hidden = true;
  } catch (error) {
    $("trouble").textContent = error.message;
    $("trouble").hidden = false;
  } finally {
    state.busy = false;
    document.body.dataset.shown = state.row ? state.row.row : "none";
    document.body.dataset.moves = Number(document.body.dataset.moves ?? 0) + 1;
  }
}

const who = () => $("annotator").value.trim() || state.overview?.annotator || "me";
const name = () => $("name").value.trim() || "new class";
const say = (text) => { $("said").textContent = text; };

function showRow(row) {
  state.row = row;
  const queue = state.audit === null ? state.queue : "audit";
  $("row").dataset.queue = queue;
  for (const button of document.querySelectorAll("[data-queue][role=radio]")) {
    const chosen = state.audit === null && button.dataset.queue === state.queue;
    button.setAttribute("aria-checked", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  for (const id of ["say-new", "say-known", "say-skip"]) $(id).disabled = !row;
  if (!row) {
    $("row-title").textContent = state.queue === "agree" ? "Nothing to agree on" : "No row is left";
    $("row-reason").textContent = state.queue === "agree" ? "Nobody else answered a row that you have not answered." : "Every row of this queue has an answer.";
    $("content").replaceChildren();
    $("classes").replaceChildren();
    $("neighbours").replaceChildren();
    return;
  }
  $("row-title").textContent = "Row " + row.id;
  const rank = "rank " + row.rank + " of " + state.overview.rows;
  $("row-reason").textContent = (state.audit === null ? row.reason : "audit of group " + (state.audit + 1)) + " · " + rank +
    (row.group >= 0 ? " · group " + (row.group + 1) : "");
  $("content").replaceChildren(...content(row));
  $("known-name").textContent = row.suggested;
  $("classes").replaceChildren(...row.keys.map((label, index) => {
    const button = make("button", { type: "button" }, label, make("kbd", {}, String(index + 1)));
    if (label === row.suggested) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => answer("known", label));
    return button;
  }));
  $("neighbours").replaceChildren(...row.neighbours.map(neighbour));
}

function showOverview(overview) {
  state.overview = overview;
  $("annotator").value ||= overview.annotator;
  const { share, precision, recall, labelled, unclear } = overview.estimates;
  const [sentence, sure] = finding(overview);
  $("finding").textContent = sentence;
  $("finding").classList.toggle("sure", sure);
  $("summary-line").textContent = "New: " + percent(share.low) + " to " + percent(share.high) + " · " + counted(overview.answers, "answer");
  const list = overview.list_is_called ? "rows called new" : "highest scores";
  $("measures").replaceChildren(
    measure("Share of new rows", share),
    measure("Precision of the list", precision, 1, "no list"),
    measure("Recall of the list", recall, 1, "no list"));
  $("how").textContent = "From " + counted(labelled, "random row") + (unclear ? ", " + unclear + " without a clear answer" : "") +
    "; 95 % intervals that hold whenever you look or stop. The list: " + overview.listed + " " + list + ".";
  const bulk = overview.bulk ? " · " + overview.bulk + " by group" : "";
  $("progress").textContent = counted(overview.answers, "answer") + " · " + overview.new + " new · " + overview.skipped + " skipped" + bulk +
    (overview.kappa === null ? "" : " · agreement κ " + overview.kappa.toFixed(2) + " on " + overview.common + " rows");
  $("learnt").textContent = overview.learnt_from
    ? "The ranking learnt from " + counted(overview.learnt_from, "answer") + "; that changed " + overview.changed + " of its " + overview.listed + " highest rows."
    : "The ranking is the model's own; it learns after every " + overview.refit_every + " answers.";
  $("agree-note").textContent = overview.disputed ? overview.disputed + " disputed" : "second opinions";
  showNames(overview.names);
}

function showNames(names) {
  const signature = JSON.stringify([names, name()]);
  if (showNames.last === signature || $("names").querySelector("input")) return;
  showNames.last = signature;
  $("new-name").textContent = name();
  $("name-list").replaceChildren(...names.map((entry) => make("option", { value: entry.name })));
  $("names").replaceChildren(...names.map((entry) => {
    const choose = make("button", { type: "button", "aria-pressed": String(entry.name === name()) },
      make("span", {}, entry.name), make("span", {}, String(entry.rows)));
    choose.addEventListener("click", () => setName(entry.name));
    const edit = make("button", { type: "button", class: "edit", "aria-label": "Rename or merge " + entry.name }, "Rename");
    const item = make("li", {}, choose, edit);
    edit.addEventListener("click", () => editName(item, entry.name));
    return item;
  }));
}

function editName(item, old) {
  const input = make("input", { value: old, maxLength: 80, "aria-label": "New name; that of another class merges both" });
  const finish = (save) => {
    const to = input.value.trim();
    item.replaceChildren();
    showNames.last = null;
    if (!save || !to || to === old) return showNames(state.overview.names);
    move(async () => {
      const reply = await ask("/api/rename", { from: old, to });
      if (name() === old) setName(to);
      showOverview(reply.overview);
      say("Renamed " + old + " to " + to);
    });
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") finish(true);
    if (event.key === "Escape") finish(false);
  });
  item.replaceChildren(input);
  input.focus();
  input.select();
}

function setName(value) {
  $("name").value = value;
  store("name", value);
  $("new-name").textContent = name();
  if (state.overview) showNames(state.overview.names);
}

const answer = (verdict, label) => move(async () => {
  if (!state.row) return;
  const row = state.row, queue = state.audit === null ? state.queue : "audit";
  const reply = await ask("/api/answer", { row: row.row, verdict, queue, label: verdict === "new" ? name() : label });
  showOverview(reply.overview);
  const saved = "Saved: " + (verdict === "new" ? "new, " + name() : verdict === "known" ? "known, " + (label ?? row.suggested) : "skipped");
  if (state.audit === null) showRow(reply.next);
  else await nextOfAudit();
  say(saved + ". " + $("row-title").textContent + ". " + $("content").innerText.slice(0, 300));
});

const undo = () => move(async () => {
  const reply = await ask("/api/undo", { queue: state.queue });
  showOverview(reply.overview);
  if (reply.undone === null) return say("Nothing to undo");
  say(reply.undone.length > 1 ? "Took back " + reply.undone.length + " answers" : "Took back the last move");
  if (reply.next) showRow(reply.next);
});

const next = (queue) => move(async () => {
  state.audit = null;
  state.queue = queue;
  store("queue", queue);
  showOverview(await ask("/api/overview"));
  showRow(await ask("/api/next?queue=" + queue + "&annotator=" + encodeURIComponent(who())));
});

const openGroups = (group) => move(async () => {
  const groups = state.overview.groups;
  state.group = Math.min(group, groups.length - 1);
  if (!$("groups").open) $("groups").showModal();
  if (!groups.length) {
    $("group-audit").replaceChildren(make("p", {}, "No row is called new, so there are no groups."));
    return;
  }
  $("group-tabs").replaceChildren(...groups.map((entry) => {
    const button = make("button", { type: "button", "aria-pressed": String(entry.number === state.group) },
      "Group " + (entry.number + 1) + " · " + entry.size + " rows");
    button.addEventListener("click", () => openGroups(entry.number));
    return button;
  }));
  showGroup(await ask("/api/group/" + state.group));
});

function showGroup(group) {
  const looked = group.audited + " of " + group.needed + " random rows looked at, " + group.new + " of them new";
  const bound = "at least " + percent(group.purity) + " of the group is new (95 % sure at every look; " + percent(group.pure) + " are needed)";
  const left = group.size - group.answered;
  const go = group.ready
    ? make("button", { type: "button", class: "go", disabled: !left }, left ? "Accept the other " + left + " as “" + name() + "”" : "All rows have an answer")
    : make("button", { type: "button", disabled: !group.open.length }, "Look at " + group.open.length + " random rows");
  go.addEventListener("click", () => (group.ready ? accept(group) : startAudit(group)));
  $("group-audit").replaceChildren(make("div", { class: "audit" }, make("p", {}, looked + ": " + bound + "."), make("div", { class: "row" }, go)));
  $("group-rows").replaceChildren(...group.members.map(tile));
}

const accept = (group) => move(async () => {
  const reply = await ask("/api/accept", { group: group.number, name: name() });
  showOverview(reply.overview);
  say("Accepted " + reply.accepted + " rows as " + name());
  showGroup(await ask("/api/group/" + group.number));
});

const startAudit = (group) => move(async () => {
  $("groups").close();
  state.audit = group.number;
  await nextOfAudit();
});

async function nextOfAudit() {
  const group = await ask("/api/group/" + state.audit);
  if (group.open.length) return showRow(await ask("/api/row/" + group.open[0] + "?queue=audit"));
  state.audit = null;
  showRow(await ask("/api/next?queue=" + state.queue + "&annotator=" + encodeURIComponent(who())));
  state.group = group.number;
  $("groups").showModal();
  showGroup(group);
}

const KEYS = {
  n: () => answer("new"), k: () => answer("known"), s: () => answer("skip"), u: undo, g: () => openGroups(state.group),
  e: () => next("estimate"), x: () => next("explore"), a: () => next("agree"), c: () => $("name").select(), "?": () => $("help").showModal(),
};

addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (typing && (event.key === "Enter" || event.key === "Escape") && event.target.id) return event.target.blur();
  if (typing || event.altKey || event.metaKey && event.key !== "z") return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") { event.preventDefault(); return undo(); }
  if (event.ctrlKey || document.querySelector("dialog[open]")) return;
  const label = state.row?.keys[Number(event.key) - 1];
  const action = /^[1-9]$/.test(event.key) ? label && (() => answer("known", label)) : KEYS[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
});

document.querySelector(".queues").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const all = [...document.querySelectorAll("[data-queue][role=radio]")];
  const to = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
  to.focus();
  next(to.dataset.queue);
  event.preventDefault();
});

for (const button of document.querySelectorAll("[data-queue][role=radio]")) button.addEventListener("click", () => next(button.dataset.queue));
for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
$("say-new").addEventListener("click", () => answer("new"));
$("say-known").addEventListener("click", () => answer("known"));
$("say-skip").addEventListener("click", () => answer("skip"));
$("say-undo").addEventListener("click", undo);
$("show-groups").addEventListener("click", () => openGroups(state.group));
$("show-help").addEventListener("click", () => $("help").showModal());
$("name").addEventListener("input", () => setName($("name").value));
$("annotator").addEventListener("change", () => { store("annotator", who()); next(state.queue); });

// what others answer, or another tab, appears here too
function refresh() {
  if (document.hidden || state.busy) return;
  ask("/api/overview").then((overview) => { if (!state.busy) showOverview(overview); }).catch(() => {});
}
setInterval(refresh, 4000);
document.addEventListener("visibilitychange", refresh);

$("annotator").value = stored("annotator", "");
$("name").value = stored("name", "");
$("name").placeholder = "new class";
if (matchMedia("(max-width: 60rem)").matches) $("panel").open = false;
next(["estimate", "explore", "agree"].includes(state.queue) ? state.queue : "estimate");
