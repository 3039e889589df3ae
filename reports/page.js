// SPDX-License-Identifier: Apache-2.0
// Behaviour of the report page: draws the charts, sorts tables, follows light, dark, width and
// print. Text from the data goes into the page as text nodes only, never as markup.
"use strict";
(function () {
const {data, selected} = charts;
const byId = (id) => document.getElementById(id);

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Text that may break after a comma.
function breakable(text) {
  return text.split(/(?<=,)/).flatMap((part, i) => i ? [element("wbr", null), part] : [part]);
}

function showTip(_, event, item, value) {
  const tip = byId("tip");
  if (!value) {
    tip.hidden = true;
    return;
  }
  const {title, ...fields} = value;
  const list = element("dl", null);
  for (const [key, text] of Object.entries(fields)) {
    if (text !== "") list.append(element("dt", key), element("dd", text));
  }
  tip.replaceChildren(element("b", title), list);
  tip.hidden = false;
  const room = 14, width = tip.offsetWidth, height = tip.offsetHeight;
  const x = event.clientX + room + width > innerWidth ? event.clientX - room - width
                                                      : event.clientX + room;
  const y = event.clientY + room + height > innerHeight ? event.clientY - room - height
                                                        : event.clientY + room;
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = Math.max(4, y) + "px";
}

const drawn = [
  {id: "ratios", spec: charts.ratioSpec, view: null,
   empty: "Nothing was measured against: rnntune bench --against unfused,onednn"},
  {id: "roof", spec: charts.rooflineSpec, view: null,
   empty: "The limits of this machine were not measured: rnntune devices --measure"},
  {id: "points", spec: charts.landscapeSpec, view: null,
   empty: "The journal holds no timed config of this problem."}];

function saveLinks(chart) {
  const links = element("span", null, {class: "save"});
  for (const type of ["svg", "png"]) {
    const link = element("a", "Save " + type.toUpperCase(), {href: "#"});
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const url = await chart.view.toImageURL(type, 2);
      element("a", "", {href: url, download: "rnntune-" + chart.id + "." + type}).click();
    });
    links.append(link);
  }
  return links;
}

function draw(chart) {
  const figure = byId(chart.id);
  const style = getComputedStyle(figure);
  const width = figure.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const spec = chart.spec(charts.theme(), Math.max(240, width));
  if (chart.view) chart.view.finalize();
  chart.view = null;
  if (!spec) {
    figure.replaceChildren(element("p", chart.empty, {class: "empty"}));
    return;
  }
  const holder = element("div", null);
  figure.replaceChildren(holder, saveLinks(chart));
  chart.view = new vega.View(vega.parse(spec, null, {ast: true}), {
    expr: vega.expressionInterpreter, renderer: "svg", container: holder, hover: true});
  chart.view.tooltip(showTip);
  chart.view.run();
}

const drawAll = () => drawn.forEach(draw);

function fillFastest() {
  const problem = data.problems[selected.problem];
  const fastest = problem ? charts.timed(problem).sort((a, b) => a.time_us.median - b.time_us.median)
                                  .slice(0, 10) : [];
  byId("fastest").tBodies[0].replaceChildren(...fastest.map((attempt, index) => {
    const row = element("tr", null);
    const toBest = attempt.time_us.median / fastest[0].time_us.median;
    const config = element("td", null);
    config.append(...breakable(attempt.config));
    row.append(element("td", String(index + 1), {class: "number"}), config,
               element("td", attempt.label, {class: "number"}),
               element("td", toBest.toFixed(3) + "\u00d7", {class: "number"}));
    return row;
  }));
  byId("fastest").closest(".scroll").hidden = fastest.length === 0;
}

function options(select, values, chosen) {
  select.replaceChildren(...values.map(([value, text]) => element("option", text, {value})));
  select.value = chosen;
}

// Rows and colours on offer: the variant, and every parameter that takes more than one value.
function fillControls() {
  const problem = data.problems[selected.problem];
  const seen = new Map();
  for (const attempt of problem ? charts.timed(problem) : []) {
    for (const [key, value] of Object.entries(attempt.params)) {
      seen.set(key, (seen.get(key) || new Set()).add(value));
    }
  }
  const params = [...seen.keys()].filter((key) => seen.get(key).size > 1);
  const single = ["variant", ...params].map((key) => [key, key]);
  const pairs = params.map((key) => ["variant+" + key, "variant, " + key]);
  const keep = (value, choices, otherwise) =>
    choices.some(([key]) => key === value) ? value : otherwise;
  const rows = [...pairs, ...single];
  selected.rows = keep(selected.rows, rows, params.includes("layout") ? "variant+layout"
                                                                      : "variant");
  selected.colour = keep(selected.colour, single, "variant");
  options(byId("rows"), rows, selected.rows);
  options(byId("colour"), single, selected.colour);
}

function select() {
  fillControls();
  fillFastest();
  draw(drawn[2]);
}

function sortBy(table, column, button) {
  const header = button.closest("th");
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[column].dataset.order;
  const text = (row) => row.cells[column].textContent;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    // Cells without a figure stay at the end in both directions.
    if ((key(a) === "") !== (key(b) === "")) return key(a) === "" ? 1 : -1;
    const order = key(a) === "" ? text(a).localeCompare(text(b), "en", {numeric: true})
                                : Number(key(a)) - Number(key(b));
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th button").forEach((button, column) =>
    button.addEventListener("click", () => sortBy(table, column, button)));
}

options(byId("problem"), data.problems.map((p, i) => [String(i), p.name]), "0");
byId("problem").addEventListener("change", (event) => {
  selected.problem = Number(event.target.value);
  select();
});
for (const key of ["rows", "colour"]) {
  byId(key).addEventListener("change", (event) => {
    selected[key] = event.target.value;
    draw(drawn[2]);
  });
}

let width = innerWidth, timer = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(timer);
  timer = setTimeout(drawAll, 120);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// Paper is white: draw light for it.
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("print");
  drawAll();
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("print");
  drawAll();
});

fillControls();
fillFastest();
drawAll();
})();
