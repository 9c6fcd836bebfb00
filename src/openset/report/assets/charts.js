"use strict";
// The charts. Their data is the JSON in the page, their colours are in its style sheet; nothing is fetched.
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const charts = {};
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const faded = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");
  const percent = (share, digits = 1) => share === null ? "—" : `${(100 * share).toFixed(digits)}%`;
  const number = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
  const words = (name) => name.replaceAll("_", " ");

  const axis = (title, more = {}) => ({
    title: { display: Boolean(title), text: title, color: colour("quiet") },
    ticks: { color: colour("quiet"), maxRotation: 0, includeBounds: false, ...more.ticks },
    grid: { color: faded(colour("line"), 0.7), ...more.grid },
    border: { color: colour("line") },
    ...Object.fromEntries(Object.entries(more).filter(([key]) => !["ticks", "grid"].includes(key))),
  });
  const shareAxis = (title, more = {}) =>
    axis(title, { beginAtZero: true, ...more, ticks: { callback: (value) => `${Number((100 * value).toPrecision(3))}%` } });
  const zoom = (mode) => ({
    zoom: {
      drag: { enabled: true, threshold: 8, backgroundColor: faded(colour("target"), 0.15) },
      wheel: { enabled: true, modifierKey: "ctrl" },
      mode,
    },
  });
  const options = ({ scales, legend = true, tooltip = {}, plugins = {}, ...rest }) => ({
    responsive: true,
    maintainAspectRatio: false,
    animation: false,
    scales,
    plugins: {
      legend: { display: legend, align: "start", labels: { color: colour("ink"), usePointStyle: true, boxHeight: 7, padding: 14 } },
      tooltip: {
        backgroundColor: colour("ink"), titleColor: colour("page"), bodyColor: colour("page"), padding: 10,
        boxPadding: 4, usePointStyle: true, ...tooltip,
      },
      ...plugins,
    },
    ...rest,
  });
  const dashed = (label, points) => ({
    type: "line", label, data: points, borderColor: colour("ink"), borderWidth: 1.5, borderDash: [6, 4],
    pointRadius: 0, pointHitRadius: 0, fill: false, pointStyle: "line",
  });

  const makers = {
    scores: ({ edges, source, target, threshold }) => {
      const steps = (shares) => shares.map((share, bin) => ({ x: edges[bin], y: share })).concat({ x: edges.at(-1), y: shares.at(-1) });
      const part = (label, shares) => ({
        label, data: steps(shares), stepped: "before", fill: "origin", pointRadius: 0, pointHitRadius: 8, borderWidth: 1.5,
        borderColor: colour(label), backgroundColor: faded(colour(label), 0.28), pointStyle: "rect",
      });
      const top = Math.max(...source, ...target);
      const line = threshold === null ? [] : [dashed("threshold", [{ x: threshold, y: 0 }, { x: threshold, y: top * 1.05 }])];
      return {
        type: "line",
        data: { datasets: [part("source", source), part("target", target), ...line] },
        options: options({
          interaction: { mode: "nearest", axis: "x", intersect: false },
          scales: {
            x: axis("Novelty score (higher = less like the labelled data)", { type: "linear", min: edges[0], max: edges.at(-1), ticks: { callback: number } }),
            y: shareAxis("Share of rows per bar", { max: top * 1.05 }),
          },
          tooltip: {
            filter: (item) => item.dataset.label !== "threshold",
            callbacks: {
              title: ([item]) => {
                if (!item) return "";
                const bin = Math.min(item.dataIndex, edges.length - 2);
                return `score ${number(edges[bin])} to ${number(edges[bin + 1])}`;
              },
              label: (item) => `${item.dataset.label} ${percent(item.parsed.y, 2)} of its rows`,
            },
          },
          plugins: { zoom: zoom("x") },
        }),
      };
    },

    mix: ({ labels, source, target }) => {
      const bars = (label, shares) => ({ label, data: shares, backgroundColor: colour(label), borderRadius: 3, maxBarThickness: 18, pointStyle: "rect" });
      return {
        type: "bar",
        data: {
          labels: labels.map((label) => label.length > 18 ? `${label.slice(0, 17)}…` : label),
          datasets: [bars("source", source), bars("target", target)],
        },
        options: options({
          indexAxis: "y",
          interaction: { mode: "index", axis: "y", intersect: false },
          scales: { x: shareAxis("Share of rows"), y: axis("", { ticks: { autoSkip: false, color: colour("ink") }, grid: { display: false } }) },
          tooltip: { callbacks: { title: ([item]) => labels[item.dataIndex], label: (item) => `${item.dataset.label} ${percent(item.parsed.x)}` } },
        }),
      };
    },

    map: (map) => {
      const table = document.getElementById("candidates");
      const contents = new Map(Array.from(table.tBodies[0].rows, (row) => [
        Number(row.querySelector("[data-key=rank]").dataset.value) - 1, row.querySelector("[data-key=content]")?.textContent ?? "",
      ]));
      const points = map.classes.map(() => []);
      map.class.forEach((index, i) => points[index].push({ x: map.x[i], y: map.y[i], i }));
      const dense = map.x.length > 1500;
      const hue = (index) => {
        if (index === 0) return colour("novel");
        return colour(index === 6 || map.classes[index] === "other known classes" ? "class-other" : `class-${index}`);
      };
      const sets = map.classes.map((label, index) => ({
        label: `${label} (${points[index].length})`, data: points[index], backgroundColor: faded(hue(index), index ? 0.55 : 0.8),
        borderWidth: 0, pointStyle: index ? "circle" : "triangle", pointRadius: (dense ? 2.2 : 3) + (index ? 0 : 1.6), order: index ? 1 : 0,
      }));
      return {
        type: "scatter",
        data: { datasets: sets },
        options: options({
          scales: {
            x: axis("First principal component", { ticks: { display: false } }),
            y: axis("Second principal component", { ticks: { display: false } }),
          },
          tooltip: {
            callbacks: {
              label: (item) => {
                const { i } = item.raw;
                const lines = [`${map.id[i]} · ${map.classes[map.class[i]]} · score ${number(map.score[i])}`];
                const text = (contents.get(map.row[i]) ?? "").slice(0, 160);
                for (const part of text.match(/.{1,54}(\s|$)|.{54}/g) ?? []) lines.push(part.trim());
                return lines;
              },
            },
          },
          plugins: { zoom: zoom("xy") },
        }),
      };
    },

    heads: ({ earlier, same_step: sameStep, chosen, budget }) => {
      const part = (label, points, name, radius, pointStyle) => ({
        label, data: points.map(([x, y, candidate, step]) => ({ x, y, candidate, step })), backgroundColor: faded(colour(name), radius > 4 ? 0.95 : 0.5),
        pointRadius: radius, pointStyle, borderWidth: 0,
      });
      const all = [...earlier, ...sameStep, ...chosen];
      const right = Math.max(...all.map(([x]) => x), budget ?? 0) * 1.08 || 0.01;
      const top = Math.max(...all.map(([, y]) => y)) * 1.08 || 1;
      const sets = [
        part("chosen head", chosen, "novel", 8, "triangle"),
        part("other heads at that step", sameStep, "target", 5, "circle"),
        part("heads at other steps", earlier, "source", 3, "circle"),
      ].filter((set) => set.data.length);
      if (budget !== null) sets.push(dashed("budget", [{ x: budget, y: 0 }, { x: budget, y: top }]));
      return {
        type: "scatter",
        data: { datasets: sets },
        options: options({
          scales: {
            x: shareAxis("False alarms: source rows called new", { max: right }),
            y: shareAxis("Target rows called new", { max: Math.min(top, 1) }),
          },
          tooltip: {
            callbacks: {
              label: ({ raw }) => raw.step === undefined ? "" :
                [`target ${percent(raw.y)}, source ${percent(raw.x, 2)}`, `candidate recall ${percent(raw.candidate)}, step ${raw.step}`],
            },
          },
        }),
      };
    },
  };

  const lines = (curves, yAxis, format) => {
    const hues = ["target", "novel", "class-2", "class-3", "source", "class-5"];
    const styles = ["circle", "triangle", "rect", "rectRot", "cross", "star"];
    return {
      type: "line",
      data: {
        datasets: Object.entries(curves).map(([name, values], index) => ({
          label: words(name), data: values.map((y, i) => ({ x: data.curves.steps[i], y })), borderWidth: 2, tension: 0,
          borderColor: colour(hues[index % 6]), backgroundColor: colour(hues[index % 6]), pointStyle: styles[index % 6],
          pointRadius: values.length > 40 ? 0 : 3,
        })),
      },
      options: options({
        interaction: { mode: "index", intersect: false },
        scales: { x: axis("Training step", { type: "linear", ticks: { precision: 0 } }), y: yAxis },
        tooltip: { callbacks: { title: ([item]) => `step ${item.parsed.x}`, label: (item) => `${item.dataset.label} ${format(item.parsed.y)}` } },
      }),
    };
  };
  makers.losses = (losses) => lines(losses, axis("Loss", { beginAtZero: true }), number);
  makers.rates = (rates) => {
    const top = Math.max(...Object.values(rates).flat());
    return lines(rates, shareAxis("Share of rows", { suggestedMax: top > 0.8 ? 1 : top * 1.1 }), (value) => percent(value, 2));
  };

  // a timeline: one point a batch; the interval of a share is a band, a batch that does not count has no evidence
  const groupColours = ["class-1", "class-2", "class-3", "class-4", "class-5", "class-other"];
  const batchAxis = (labels) => axis("Batch, in order of time", {
    type: "category", ticks: { callback: (_, index) => labels[index].length > 12 ? `${labels[index].slice(0, 11)}…` : labels[index] },
  });
  makers.shares = ({ labels, called, low, high, groups }) => {
    const band = (label, data, fill) => ({
      label, data, borderWidth: 0, pointRadius: 0, pointHitRadius: 0, fill, backgroundColor: faded(colour("novel"), 0.18), pointStyle: "rect", order: 2,
    });
    const line = (label, data, name, pointStyle, more = {}) => ({
      label, data, borderColor: colour(name), backgroundColor: colour(name), borderWidth: 2, pointRadius: 4, pointStyle, spanGaps: false, ...more,
    });
    const styles = ["triangle", "rect", "rectRot", "star", "cross", "crossRot"];
    return {
      type: "line",
      data: {
        labels,
        datasets: [
          line("all rows called new", called, "novel", "circle", { order: 1 }),
          band("95% interval", high, "+1"), band("", low, false),
          ...groups.map((group, index) => line(group.name, group.shares, groupColours[index % 6], styles[index % 6], { borderWidth: 1.5, borderDash: [2, 4], order: 0 })),
        ],
      },
      options: options({
        interaction: { mode: "index", intersect: false },
        scales: { x: batchAxis(labels), y: shareAxis("Share of the batch's rows") },
        tooltip: {
          filter: (item) => item.datasetIndex !== 1 && item.datasetIndex !== 2 && item.raw !== null,
          callbacks: {
            title: ([item]) => item ? labels[item.dataIndex] : "",
            label: (item) => item.datasetIndex ? `${item.dataset.label} ${percent(item.parsed.y)}`
              : `called new ${percent(item.parsed.y)} (${percent(low[item.dataIndex])} to ${percent(high[item.dataIndex])})`,
          },
        },
        plugins: {
          legend: {
            align: "start",
            labels: { color: colour("ink"), usePointStyle: true, boxHeight: 7, padding: 14, filter: (item) => item.text !== "" },
          },
        },
      }),
    };
  };
  makers.evidence = ({ labels, evidence, counted, limit }) => {
    const top = Math.max(limit * 3, ...evidence);
    return {
      type: "line",
      data: {
        labels,
        datasets: [
          {
            label: "evidence of a new class", data: evidence, borderColor: colour("target"), backgroundColor: counted.map((yes) => yes ? colour("target") : colour("page")),
            borderWidth: 2, pointRadius: 4, pointStyle: "circle", stepped: false,
          },
          dashed(`noticed from ${number(limit)} on`, labels.map(() => limit)),
        ],
      },
      options: options({
        interaction: { mode: "index", intersect: false },
        scales: {
          x: batchAxis(labels),
          y: axis("Evidence (logarithmic)", { type: "logarithmic", max: top * 1.5, ticks: { callback: (value) => Number.isInteger(Math.log10(value)) ? value.toExponential(0).replace("e+0", "").length > 4 || value >= 1e4 || value < 1e-3 ? value.toExponential(0) : String(value) : "" } }),
        },
        tooltip: {
          filter: (item) => item.datasetIndex === 0,
          callbacks: {
            title: ([item]) => item ? labels[item.dataIndex] : "",
            label: (item) => counted[item.dataIndex] ? `evidence ${number(item.parsed.y)}` : `cannot tell; evidence stays at ${number(item.parsed.y)}`,
          },
        },
      }),
    };
  };

  const draw = () => {
    const all = { ...data, losses: data.curves?.losses, rates: data.curves?.rates };
    for (const [name, make] of Object.entries(makers)) {
      const canvas = document.getElementById(`chart-${name}`);
      if (!canvas || !all[name]) continue;
      charts[name]?.destroy();
      if (name === "mix") canvas.parentElement.style.height = `${Math.max(10, 5 + 2.6 * all.mix.labels.length)}rem`;
      charts[name] = new Chart(canvas, make(all[name]));
    }
  };

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-zoom]");
    if (!button) return;
    const chart = charts[button.dataset.chart];
    if (button.dataset.zoom === "reset") chart.resetZoom();
    else chart.zoom(button.dataset.zoom === "in" ? 1.4 : 1 / 1.4);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // print in light colours, whatever the screen uses
  const onPaper = (printing) => () => { document.documentElement.classList.toggle("light", printing); draw(); };
  addEventListener("beforeprint", onPaper(true));
  addEventListener("afterprint", onPaper(false));
  draw();
})();
