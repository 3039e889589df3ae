// SPDX-License-Identifier: Apache-2.0
// The charts of the report page, each a function of the page's data, the colours and the width that
// gives a Vega specification, or null where there is nothing to draw.
"use strict";
const charts = (function () {
const data = JSON.parse(document.getElementById("data").textContent);

// Colours and fonts of the style sheet, so that charts follow light, dark and print.
function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue("--" + name).trim();
  const t = {};
  for (const name of ["bg", "text", "muted", "line", "accent", "grid", "mark", "sans"]) {
    t[name] = read(name);
  }
  t.series = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => read("c" + i));
  return t;
}

// A variant or opponent has the same colour in every chart.
const fixedColours = {cell: 0, pointwise: 2, persistent: 3, unfused: 5, onednn: 1, cudnn: 4};

function colourRange(names, t) {
  const taken = new Set(names.filter((n) => n in fixedColours).map((n) => fixedColours[n]));
  const free = [0, 1, 2, 3, 4, 6, 7, 5].filter((i) => !taken.has(i));
  return names.map((n, i) => t.series[n in fixedColours ? fixedColours[n]
                                                        : free[i % free.length]]);
}

function config(t) {
  const axis = {domainColor: t.line, tickColor: t.line, gridColor: t.grid, labelColor: t.muted,
                titleColor: t.muted, labelFont: t.sans, titleFont: t.sans, labelFontSize: 12,
                titleFontSize: 12, titleFontWeight: 500, titlePadding: 10, labelPadding: 5,
                labelOverlap: "greedy", labelSeparation: 6};
  return {background: null, axis,
          text: {font: t.sans, fontSize: 12, fill: t.text},
          legend: {labelColor: t.text, titleColor: t.muted, labelFont: t.sans, titleFont: t.sans,
                   labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, symbolSize: 90}};
}

const percent = (value) => (100 * value).toPrecision(value < 0.0995 ? 2 : 3) + "%";
const digits3 = (value) => Number(value.toPrecision(3)).toLocaleString("en");

function timeText(us) {
  const [scale, unit] = us >= 999.5e3 ? [1e6, "s"] : us >= 999.5 ? [1e3, "ms"] : [1, "\u00b5s"];
  return (us / scale).toPrecision(3).replace(/e\+3$/, "00") + " " + unit;
}

// Axis ticks of a range of times that rarely spans a decade: 1, 2 and 5 of each, or finer.
function logTicks(low, high) {
  for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8],
                       [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.2, 3.5, 4, 4.5,
                        5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5]]) {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) {
      ticks.push(...steps.map((s) => Number((s * 10 ** e).toPrecision(3))));
    }
    const inside = ticks.filter((v) => v >= low && v <= high);
    if (inside.length >= 5) return inside;
  }
  return undefined;
}

function base(t, width, height, more) {
  return {$schema: "https://vega.github.io/schema/vega/v5.json", config: config(t), width, height,
          autosize: {type: "fit-x", contains: "padding"},
          padding: {left: 0, right: 2, top: 0, bottom: 5}, ...more};
}

/* ---- ratios ---- */

function ratioSpec(t, width) {
  const rows = [];
  for (const problem of data.problems) {
    for (const o of problem.against) {
      if (!o.ratio) continue;
      rows.push({problem: problem.name, opponent: o.name, ...o.ratio,
                 label: o.ratio.median.toPrecision(3) + "\u00d7",
                 tip: {title: problem.name + " against " + o.name,
                       ratio: o.ratio.median.toPrecision(3) + "\u00d7",
                       interval: o.ratio.low.toPrecision(3) + " to " + o.ratio.high.toPrecision(3),
                       "our step": problem.label || "",
                       "its step": o.time_us ? timeText(o.time_us.median) : "",
                       version: o.version}});
    }
  }
  if (rows.length === 0) return null;
  const names = data.opponents.filter((n) => rows.some((r) => r.opponent === n));
  const low = Math.min(0.8, ...rows.map((r) => r.low)) * 0.95;
  const high = Math.max(1.25, ...rows.map((r) => r.high)) * 1.2;
  const problems = [...new Set(rows.map((r) => r.problem))];
  const bar = {from: {data: "facet"}};
  const y = {scale: "inner", field: "opponent"};
  return base(t, width, problems.length * (names.length * 17 + 14), {
    data: [{name: "rows", values: rows}],
    scales: [
      {name: "y", type: "band", domain: problems, range: "height", paddingInner: 0.24,
       paddingOuter: 0.12},
      {name: "x", type: "log", domain: [low, high], range: "width"},
      {name: "colour", type: "ordinal", domain: names, range: colourRange(names, t)}],
    axes: [{orient: "left", scale: "y", domain: false, ticks: false, labelColor: t.text,
            labelLimit: Math.max(90, width * 0.3)},
           {orient: "bottom", scale: "x", grid: true, domain: false, ticks: false,
            values: logTicks(low, high), title: "their time / our time", format: ".3~r"}],
    legends: [{fill: "colour", orient: "top", direction: "horizontal", symbolType: "square",
               offset: 8}],
    marks: [
      {type: "group", from: {facet: {data: "rows", name: "facet", groupby: "problem"}},
       encode: {update: {y: {scale: "y", field: "problem"}, height: {scale: "y", band: 1},
                         width: {signal: "width"}}},
       signals: [{name: "height", update: "bandwidth('y')"}],
       scales: [{name: "inner", type: "band", domain: names, range: "height", paddingInner: 0.18}],
       marks: [
         {type: "rect", ...bar, encode: {update: {
           y, height: {scale: "inner", band: 1}, x: {scale: "x", value: 1},
           x2: {scale: "x", field: "median"}, fill: {scale: "colour", field: "opponent"},
           tooltip: {field: "tip"}, cornerRadius: {value: 2}}}},
         {type: "rule", ...bar, interactive: false, encode: {update: {
           y: {scale: "inner", field: "opponent", band: 0.5}, x: {scale: "x", field: "low"},
           x2: {scale: "x", field: "high"}, stroke: {value: t.mark}, strokeWidth: {value: 1.5}}}},
         {type: "text", ...bar, interactive: false, encode: {update: {
           y: {scale: "inner", field: "opponent", band: 0.5}, baseline: {value: "middle"},
           x: {signal: "scale('x', max(datum.high, 1)) + 7"}, text: {field: "label"},
           fontSize: {value: 12}}}}]},
      {type: "rule", interactive: false, encode: {update: {
        x: {scale: "x", value: 1}, y: {value: 0}, y2: {signal: "height"},
        stroke: {value: t.mark}, strokeWidth: {value: 1}}}}]});
}

/* ---- roofline ---- */

function rooflineData() {
  const dots = data.problems.filter((p) => p.intensity && p.gflops).map((p) => {
    const bound = p.bound_us ? p.gflops * p.time_us.median / p.bound_us : null;
    return {name: p.name, x: p.intensity, y: p.gflops, bound, variant: p.variant,
            tip: {title: p.name, "GFLOP/s": digits3(p.gflops), "of roofline":
                  bound ? percent(p.gflops / bound) : "", "limited by": p.limit || "",
                  "FLOP per byte": digits3(p.intensity), threads: p.threads || "",
                  config: p.config}};
  });
  const used = new Set(data.problems.map((p) => p.threads));
  const shown = data.limits.filter((l) => l.peak_gflops && used.has(l.threads));
  return {dots, limits: shown.length ? shown : data.limits.filter((l) => l.peak_gflops)};
}

function roofs(limits, left, right, bottom) {
  const lines = [], labels = [];
  const most = Math.max(...limits.map((l) => l.threads));
  for (const l of limits) {
    const unit = l.threads === 1 ? "1 thread" : l.threads + " threads";
    const ridges = l.bandwidth.map((b) => l.peak_gflops / b.gbytes_per_s);
    const add = (id, points, tip) =>
      points.forEach(([x, y]) => lines.push({id, x, y, threads: unit, tip}));
    add("peak" + l.threads, [[Math.max(left, Math.min(right, ...ridges)), l.peak_gflops],
                             [right, l.peak_gflops]],
        {title: "FMA peak, " + unit, "GFLOP/s": digits3(l.peak_gflops)});
    labels.push({x: right, y: l.peak_gflops, text: unit + ": " + digits3(l.peak_gflops)});
    for (const b of l.bandwidth) {
      const ridge = Math.min(right, l.peak_gflops / b.gbytes_per_s);
      if (ridge <= left) continue;
      add("bandwidth" + l.threads + "/" + b.bytes,
          [[left, left * b.gbytes_per_s], [ridge, ridge * b.gbytes_per_s]],
          {title: "Read bandwidth, " + unit, "GB/s": digits3(b.gbytes_per_s),
           "working set per thread": b.label});
      if (l.threads === most) {
        const x = Math.max(left, 1.25 * bottom / b.gbytes_per_s);
        labels.push({x, y: x * b.gbytes_per_s, slope: true,
                     text: digits3(b.gbytes_per_s) + " GB/s, " + b.label});
      }
    }
  }
  return {lines, labels};
}

function rooflineSpec(t, width) {
  const {dots, limits} = rooflineData();
  if (limits.length === 0 || dots.length === 0) return null;
  const rates = limits.flatMap((l) => l.bandwidth.map((b) => b.gbytes_per_s));
  const peaks = limits.map((l) => l.peak_gflops);
  const ridge = rates.length ? Math.min(...peaks) / Math.max(...rates) : 1;
  const left = Math.min(ridge / 4, ...dots.map((d) => d.x / 2));
  const right = Math.max(ridge * 16, ...dots.map((d) => d.x * 2.5));
  const top = Math.max(...peaks) * 1.8;
  const bottom = Math.min(...dots.map((d) => d.y / 2), ...peaks.map((p) => p / 30));
  const height = Math.round(Math.max(300, Math.min(460, width * 0.46)));
  const {lines, labels} = roofs(limits, left, right, bottom);
  const threads = [...new Set(lines.map((l) => l.threads))];
  const point = {x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}};
  const shades = threads.map((_, i) => t.series[[0, 2, 3, 4][i % 4]]);
  return base(t, width, height, {
    data: [{name: "lines", values: lines}, {name: "dots", values: dots},
           {name: "labels", values: labels}],
    scales: [{name: "x", type: "log", domain: [left, right], range: "width"},
             {name: "y", type: "log", domain: [bottom, top], range: "height"},
             {name: "colour", type: "ordinal", domain: threads, range: shades}],
    axes: [{orient: "bottom", scale: "x", grid: true, format: ".3~r",
            values: logTicks(left, right), title: "FLOP per byte moved"},
           {orient: "left", scale: "y", grid: true, format: ".3~r",
            values: logTicks(bottom, top), title: "GFLOP/s"}],
    legends: [{stroke: "colour", orient: "top", direction: "horizontal", symbolType: "stroke",
               symbolStrokeWidth: 2.5, offset: 8, title: "measured limits at",
               titleOrient: "left"}],
    marks: [
      {type: "group", clip: true, encode: {update: {width: {signal: "width"},
                                                    height: {signal: "height"}}},
       marks: [{type: "group", from: {facet: {data: "lines", name: "line", groupby: "id"}},
                marks: [{type: "line", from: {data: "line"}, encode: {update: {
                  ...point, stroke: {scale: "colour", field: "threads"}, strokeWidth: {
                    signal: "indexof(datum.id, 'peak') === 0 ? 2.5 : 1.4"},
                  strokeOpacity: {signal: "indexof(datum.id, 'peak') === 0 ? 1 : 0.75"},
                  tooltip: {field: "tip"}}}}]}]},
      {type: "text", name: "limit", from: {data: "labels"}, interactive: false, encode: {update: {
        ...point, text: {field: "text"}, fill: {value: t.muted}, fontSize: {value: 11},
        align: {signal: "datum.slope ? 'left' : 'right'"}, dx: {signal: "datum.slope ? 5 : -4"},
        dy: {value: -5}, angle: {signal: "datum.slope ? " + slopeAngle(left, right, bottom, top) +
                                         " : 0"}}}},
      {type: "rule", from: {data: "dots"}, interactive: false, encode: {update: {
        x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"},
        y2: {scale: "y", signal: "datum.bound || datum.y"}, stroke: {value: t.mark},
        strokeOpacity: {value: 0.45}, strokeDash: {value: [2, 3]}}}},
      {type: "symbol", from: {data: "dots"}, interactive: false, encode: {update: {
        x: {scale: "x", field: "x"}, y: {scale: "y", signal: "datum.bound || datum.y"},
        shape: {value: "stroke"}, stroke: {value: t.mark}, strokeWidth: {value: 1.6},
        size: {value: 110}, opacity: {signal: "datum.bound ? 0.9 : 0"}}}},
      {type: "symbol", name: "dot", from: {data: "dots"}, encode: {update: {
        ...point, fill: {value: t.series[1]}, stroke: {value: t.bg}, strokeWidth: {value: 1.5},
        size: {value: 110}, tooltip: {field: "tip"}}}},
      {type: "text", from: {data: "dot"}, interactive: false, encode: {update: {
        text: {field: "datum.name"}, fontWeight: {value: 600}, fill: {value: t.text}}},
       transform: [{type: "label", size: {signal: "[width, height]"}, offset: [4],
                    avoidMarks: ["limit"],
                    anchor: ["right", "bottom-right", "top-right", "left", "bottom-left",
                             "top-left", "bottom", "top"]}]}]});
}

// On log axes every bandwidth line has the same slope; in degrees on this chart.
function slopeAngle(left, right, bottom, top) {
  return "-atan2(height / " + Math.log(top / bottom) + ", width / " + Math.log(right / left) +
         ") * 180 / PI";
}

/* ---- landscape ---- */

const selected = {problem: 0, rows: "", colour: ""};

const valueOf = (attempt, key) =>
  key === "variant" ? attempt.variant
                    : key.split("+").map((k) => k === "variant" ? attempt.variant
                                                                 : attempt.params[k]).filter(
                          (v) => v !== undefined).join(" \u00b7 ") || "none";

const timed = (problem) => problem.attempts.filter((a) => a.outcome === "ok" && a.time_us);

// Evenly spread and the same at every drawing: multiples of the golden ratio.
const spread = (index) => (index * 0.6180339887) % 1;

function landscapeRows(problem) {
  return timed(problem).map((a, i) => ({
    row: valueOf(a, selected.rows), colour: valueOf(a, selected.colour), time: a.time_us.median,
    jitter: spread(i + 1), best: a.best,
    tip: {title: a.variant, "step time": a.label, ...a.params, "": a.best ? "the best one" : ""}}));
}

const timeLabel = "datum.value >= 999500 ? format(datum.value / 1e6, '.3~r') + ' s' : " +
  "datum.value >= 999.5 ? format(datum.value / 1e3, '.3~r') + ' ms' : " +
  "format(datum.value, '.3~r') + ' \u00b5s'";
const place = {x: {scale: "x", field: "time"}, y: {signal:
  "scale('y', datum.row) + bandwidth('y') * (0.2 + 0.6 * datum.jitter)"}};
// A label at a line, kept inside the chart.
const edgeAlign = "scale('x', datum.time) > width - 40 ? 'right' : " +
  "scale('x', datum.time) < 40 ? 'left' : 'center'";

function landscapeSpec(t, width) {
  const problem = data.problems[selected.problem];
  const rows = problem ? landscapeRows(problem) : [];
  if (rows.length === 0) return null;
  const best = new Map();
  for (const r of rows) best.set(r.row, Math.min(r.time, best.get(r.row) ?? Infinity));
  const order = [...best.keys()].sort((a, b) => best.get(a) - best.get(b));
  const colours = [...new Set(rows.map((r) => r.colour))].sort(
    (a, b) => a.localeCompare(b, "en", {numeric: true}));
  const lines = problem.against.filter((o) => o.time_us).map((o) => (
    {name: o.name, time: o.time_us.median}));
  const times = [...rows.map((r) => r.time), ...lines.map((l) => l.time)];
  const low = Math.min(...times) * 0.94, high = Math.max(...times) * 1.06;
  return base(t, width, Math.max(120, order.length * 44), {
    data: [{name: "rows", values: rows}, {name: "lines", values: lines}],
    scales: [{name: "x", type: "log", domain: [low, high], range: "width"},
             {name: "y", type: "band", domain: order, range: "height"},
             {name: "colour", type: "ordinal", domain: colours,
              range: colourRange(colours, t)}],
    axes: [{orient: "bottom", scale: "x", grid: true, domain: false, ticks: false,
            values: logTicks(low, high), title: "step time", 
            encode: {labels: {update: {text: {signal: timeLabel}}}}},
           {orient: "left", scale: "y", domain: false, ticks: false, labelColor: t.text,
            labelLimit: Math.max(90, width * 0.32)}],
    legends: [{fill: "colour", orient: "top", direction: "horizontal", symbolType: "circle",
               offset: lines.length ? 22 : 8, columns: Math.max(1, Math.floor(width / 130)),
               title: selected.colour.split("+").join(", "), titleOrient: "left"}],
    marks: [
      {type: "rule", from: {data: "rows"}, interactive: false, encode: {update: {
        y: {scale: "y", field: "row"}, x: {value: 0}, x2: {signal: "width"},
        stroke: {value: t.grid}}}},
      {type: "rule", from: {data: "lines"}, interactive: false, encode: {update: {
        x: {scale: "x", field: "time"}, y: {value: -3}, y2: {signal: "height"},
        stroke: {value: t.mark}, strokeOpacity: {value: 0.6}, strokeDash: {value: [4, 3]}}}},
      {type: "text", from: {data: "lines"}, interactive: false, encode: {update: {
        x: {scale: "x", field: "time"}, y: {value: -7}, text: {field: "name"},
        align: {signal: edgeAlign},
        fill: {value: t.muted}}}},
      {type: "symbol", from: {data: "rows"}, encode: {update: {
        ...place,
        fill: {scale: "colour", field: "colour"}, fillOpacity: {value: 0.8},
        stroke: {value: t.bg}, strokeWidth: {value: 0.6}, size: {value: 52},
        tooltip: {field: "tip"}},
        hover: {fillOpacity: {value: 1}, stroke: {value: t.mark}}}},
      {type: "symbol", from: {data: "rows"}, interactive: false, encode: {update: {
        ...place,
        opacity: {signal: "datum.best ? 1 : 0"}, fill: {value: null}, stroke: {value: t.mark},
        strokeWidth: {value: 2}, size: {value: 190}}}}]});
}

return {data, selected, timed, theme, timeText, ratioSpec, rooflineSpec, landscapeSpec};
})();
