// Builds what the page shows. Text of rows goes through textContent only: nothing of a row is ever HTML.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("aria-") || name.startsWith("data-") || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

export const percent = (share) => {
  const value = 100 * share;
  const digits = value >= 10 || value === Math.round(value) ? 0 : 1;
  return (value > 0 && value < 0.05 ? "<0.1" : value.toFixed(digits)) + " %";
};

export const counted = (number, word) => number + " " + word + (number === 1 ? "" : "s");

const LONG = 600;

function text(pieces) {
  const length = pieces.reduce((sum, [piece]) => sum + piece.length, 0);
  const holder = make("p", { class: length > LONG ? "text long" : "text", dir: "auto" });
  for (const [piece, strength] of pieces) {
    holder.append(strength ? make("mark", { class: "s" + strength, title: "speaks for new" }, piece) : piece);
  }
  return holder;
}

function table(columns) {
  const rows = columns.map((column) =>
    make("tr", { class: column.unusual > 1 ? "odd" : "" },
      make("th", { scope: "row" }, column.name), make("td", { class: "value" }, column.value), make("td", { class: "note" }, column.note)));
  return make("table", {}, make("tbody", {}, ...rows));
}

export function content(row) {
  const parts = [];
  if (row.picture) parts.push(make("img", { class: "picture", src: "/api/picture/target/" + row.row, alt: "The row's picture, id " + row.id }));
  if (row.text) parts.push(text(row.text));
  const first = parts.length ? 3 : row.first_columns; // beside text or picture only the most unusual columns
  if (row.columns.length) parts.push(table(row.columns.slice(0, first)));
  const rest = row.columns.slice(first);
  if (rest.length) parts.push(make("details", {}, make("summary", {}, rest.length + " more columns"), table(rest)));
  return parts.length ? parts : [make("p", { class: "text" }, "This row is a vector without columns of its own. Judge it by the known rows nearest to it.")];
}

function picture(role, row) {
  return make("img", { src: "/api/picture/" + role + "/" + row, alt: "", loading: "lazy" });
}

export function neighbour(row) {
  const parts = [make("b", {}, row.label)];
  if (row.picture) parts.unshift(picture("source", row.row));
  return make("li", {}, ...parts, row.text);
}

export function tile(row) {
  const answer = row.answer;
  const said = !answer ? "no answer yet" : answer.is_new === null ? "skipped" : answer.label;
  const parts = [make("b", {}, said), row.text];
  if (row.picture) parts.unshift(picture("target", row.row));
  return make("li", { class: !answer ? "waiting" : answer.is_new ? "is-new" : "" }, ...parts);
}

const nice = (high) => [0.05, 0.1, 0.2, 0.5, 1].find((end) => high <= end) ?? 1;

export function measure(title, interval, end, note) {
  const value = make("p", { class: "value" }, interval ? percent(interval.value) : "–");
  const bar = make("div", { class: "bar", "aria-hidden": "true" });
  if (interval) {
    const top = end ?? nice(interval.high);
    value.append(make("small", {}, percent(interval.low) + " to " + percent(interval.high)));
    const range = make("i"), point = make("b");
    range.style.left = (100 * interval.low) / top + "%";
    range.style.width = (100 * (interval.high - interval.low)) / top + "%";
    point.style.left = (100 * interval.value) / top + "%";
    bar.append(range, point);
    note = "0 – " + percent(top);
  }
  return make("div", { class: "measure" }, make("h2", {}, title, make("span", {}, note ?? "")), value, bar);
}

export function finding(overview) {
  const wrong = "if at most " + percent(overview.error_rate) + " of known rows are called new by mistake";
  if (overview.evidence >= 20) return ["There is a new class (95 % sure at every look, " + wrong + ").", true];
  if (overview.new === 0) return ["No row was answered with “new” yet.", false];
  return ["Not proved yet that there is a new class, " + wrong + ".", false];
}
