"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const steps = new Map(data.steps.map((s) => [s.id, s]));
  const $ = (id) => document.getElementById(id);
  const detail = $("detail"), body = document.querySelector("#steps tbody");
  const state = { only: null, step: null };

  // Every text of the model goes in as text, never as markup.
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick") made.addEventListener("click", value);
      else made.setAttribute(name, value);
    }
    made.append(...children.filter((c) => c !== null && c !== undefined));
    return made;
  }

  function seconds(value) {
    if (value === null || value === undefined) return "";
    for (const [limit, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
      if (value >= limit) return `${three(value / limit)} ${unit}`;
    return `${three(value / 1e-9)} ns`;
  }
  function bytes(value) {
    if (value === null || value === undefined) return "";
    let unit = 0;
    while (value >= 1000 && unit < 4) { value /= 1024; unit += 1; }
    return `${three(value)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
  }
  const three = (value) => (value === 0 ? "0" : String(Number(value.toPrecision(3))));
  const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const percent = (value) =>
    value === null || value === undefined ? "" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;

  function shown() {
    const wanted = $("search").value.trim().toLowerCase();
    const order = $("order").value;
    const found = data.steps.filter((s) =>
      (state.only === null || state.only.includes(s.id)) &&
      (!wanted || [s.name, s.step, ...s.operators.map((o) => `${o.name} ${o.call}`)]
        .some((text) => text.toLowerCase().includes(wanted))));
    if (order !== "id") found.sort((a, b) => (b[order] || 0) - (a[order] || 0) || a.id - b.id);
    return found;
  }

  // Steps that run the same kernel, or the same routine with the same sizes, in one row.
  function together() {
    const rows = new Map();
    for (const s of shown()) rows.set(s.step, [...(rows.get(s.step) || []), s]);
    const sum = (found, what) => found.reduce((total, s) => total + (s[what] || 0), 0);
    const made = [...rows.values()].map((found) => ({
      found, name: found[0].kernel ? found[0].kernel.name : found[0].step, kind: found[0].kind,
      seconds: found[0].seconds === null ? null : sum(found, "seconds"), share: sum(found, "share"),
      bytes: found.some((s) => s.bytes === null) ? null : sum(found, "bytes"),
      of_copy: sum(found, "seconds") ? found.reduce((t, s) => t + (s.of_copy || 0) * (s.seconds || 0), 0)
        / sum(found, "seconds") : null,
    }));
    return made.sort((a, b) => b.share - a.share || b.found.length - a.found.length);
  }

  function listTogether() {
    const rows = together(), most = Math.max(...rows.map((r) => r.share), 1e-9);
    body.replaceChildren(...rows.map((r) => {
      const ids = r.found.map((s) => s.id);
      const pick = () => { $("order").value = data.steps.some((s) => s.seconds) ? "seconds" : "id"; chooseSteps(ids); };
      return row(r, element("button", { type: "button", onclick: pick }, `${r.name} × ${ids.length}`), most);
    }));
  }

  function row(s, button, most) {
    const share = element("td", { class: "number share" });
    if (s.seconds !== null) {
      const bar = element("i", { "aria-hidden": "true" });
      bar.style.setProperty("--part", `${(100 * (s.share || 0)) / most}%`);
      share.append(percent(s.share), bar);
    }
    return element("tr", {},
      element("td", {}, button), element("td", {}, s.kind),
      element("td", { class: "number" }, seconds(s.seconds)), share,
      element("td", { class: "number" }, bytes(s.bytes)),
      element("td", { class: "number", "data-label": "of copy" }, s.bytes ? percent(s.of_copy) : ""));
  }

  function list() {
    $("all").hidden = state.only === null;
    if ($("order").value === "kernel") { listTogether(); return; }
    const most = Math.max(...data.steps.map((s) => s.share || 0), 1e-9);
    body.replaceChildren(...shown().map((s) => {
      const button = element("button", { type: "button", onclick: () => choose(s.id) }, s.name);
      const made = row(s, button, most);
      made.dataset.step = s.id;
      made.classList.toggle("chosen", s.id === state.step);
      return made;
    }));
  }

  function mark() {
    for (const box of document.querySelectorAll("[data-box]")) {
      const ids = data.boxes[box.dataset.box] || [];
      const hit = state.step !== null ? ids.includes(state.step)
        : state.only !== null && ids.length === state.only.length && ids[0] === state.only[0];
      box.classList.toggle("chosen", hit && !/^g\d+p/.test(box.dataset.box));  // not each part of it
      box.setAttribute("aria-pressed", String(hit));
    }
    for (const row of body.children) row.classList.toggle("chosen", Number(row.dataset.step) === state.step);
  }

  function choose(id) {
    state.step = id;
    if (state.only !== null && !state.only.includes(id)) { state.only = null; list(); }
    mark();
    detail.replaceChildren(...describe(steps.get(id)));
    detail.scrollTop = 0;
    const row = body.querySelector(`tr[data-step="${id}"]`);
    if (row) row.scrollIntoView({ block: "nearest" });
    const box = document.querySelector("[data-box].chosen");
    if (box) box.scrollIntoView({ block: "nearest", inline: "nearest" });
    history.replaceState(null, "", `#step-${id}`);
  }

  function chooseBox(key) {
    const ids = data.boxes[key];
    if (!ids) return;
    chooseSteps(ids);
  }

  function chooseSteps(ids) {
    if (ids.length === 1) { choose(ids[0]); return; }
    state.only = ids; state.step = null;
    list(); mark();
    detail.replaceChildren(...summary(ids));
  }

  function facts(pairs) {
    const made = element("dl", {});
    for (const [name, value] of pairs)
      if (value !== "" && value !== null && value !== undefined)
        made.append(element("dt", {}, name), element("dd", {}, value));
    return made;
  }

  function summary(ids) {
    const found = ids.map((id) => steps.get(id));
    const total = (what) => found.reduce((sum, s) => sum + (s[what] || 0), 0);
    return [
      element("h2", {}, `${found.length} steps`),
      facts([
        ["from", found[0].name], ["to", found[found.length - 1].name],
        ["time", found[0].seconds === null ? "" : `${seconds(total("seconds"))}, ${percent(total("share"))}`],
        ["bytes", found.some((s) => s.bytes === null) ? "" : bytes(total("bytes"))],
        ["operators", String(found.reduce((sum, s) => sum + s.operators.length, 0))],
      ]),
      element("p", { class: "hint" }, "The list above has only these steps now; choose one of them."),
    ];
  }

  function speed(s) {
    if (!s.seconds || !s.bytes) return "";
    const made = element("span", {}, `${three(s.bytes / s.seconds / 1e9)} GB/s`);
    if (s.of_copy !== null) {
      made.append(`, ${percent(s.of_copy)} of a copy of as many bytes on this machine `,
        element("meter", { min: 0, max: 1, low: 0.4, high: 0.7, optimum: 1, value: Math.min(1, s.of_copy),
          "aria-label": "part of the bandwidth of a copy" }));
    }
    if (s.flops) made.append(`; ${three(s.flops / s.seconds / 1e9)} GFLOP/s`);
    return made;
  }

  function describe(s) {
    const parts = [
      element("h2", {}, s.name),
      facts([
        ["kind", s.kind], ["runs", s.kernel ? s.kernel.name : s.routine || s.step],
        ["time", s.seconds === null ? "" : `${seconds(s.seconds)}, ${percent(s.share)} of a run`],
        ["bytes", bytes(s.bytes)], ["speed", speed(s)],
        ["threads", s.seconds === null ? "" : String(s.threads)],
        ...(s.told || []),
      ]),
    ];
    if (s.parts && s.parts.length) parts.push(section(`${s.parts.length} parts`, table(s.parts)));
    parts.push(section("why its neighbours stayed out", s.apart && s.apart.length
      ? bullets(s.apart.map(reason)) : element("p", { class: "hint" },
        "No operator next to it was refused: it reads inputs or constants, and gives results.")));
    if (s.kernel) parts.push(section("kernel", code(data.sources[s.kernel.key])));
    if (s.schedule && s.schedule.length) parts.push(section("schedule", bullets(s.schedule)));
    if (s.operators.length) parts.push(section(counted(s.operators.length, "operator"),
      bullets(s.operators.map((o) => (o.call === o.name ? o.name : `${o.name}: ${o.call}`)))));
    if (s.reads.length || s.writes.length) parts.push(section("reads and writes", bullets([
      ...s.reads.map((v) => `reads ${v.name}  ${v.type}`),
      ...s.writes.map((v) => `writes ${v.name}  ${v.type}`)])));
    return parts;
  }

  // The parts of a kernel in their order; a column that has nothing to tell is left out.
  function table(parts) {
    const lines = (texts) => texts.map((text) => element("div", {}, text));
    const leaves = (p) => p.leaves.flatMap((v) => [
      element("div", {}, `${v.name}: ${v.type}`),
      v.owned ? element("div", { class: "hint" }, `a tile has ${v.owned}: ${v.nbytes}, in ${v.place}`)
        : null]);
    const columns = [
      ["part", (p, k) => [element("div", {}, `${k} ${p.kind}`),
        p.composition ? element("div", { class: "hint" }, p.composition) : null]],
      ["operators", (p) => lines([p.operators.join(", ")])],
      ["leaves", leaves],
      ["tiles", (p) => lines([p.tiles])],
      ["scratch", (p) => lines([p.scratch])],
    ].filter(([name]) => !(name in parts[0]) || parts.some((p) => p[name].length));
    const head = element("tr", {}, ...columns.map(([name]) => element("th", {}, name)));
    const rows = parts.flatMap((p, k) => [
      element("tr", { class: p.stages.length ? "open" : "" },
        ...columns.map(([name, cell]) => element("td", { class: name }, ...cell(p, k).filter(Boolean)))),
      p.stages.length ? element("tr", {},
        element("td", { colspan: columns.length, class: "hint" }, ...lines(p.stages))) : null]);
    return element("table", { class: "parts" }, element("thead", {}, head),
      element("tbody", {}, ...rows.filter(Boolean)));
  }

  function reason(d) {
    const made = element("span", {}, end(d, d.producer), " → ", end(d, d.consumer), `: ${d.reason}`);
    if (d.way_out) made.append(` — ${d.way_out}`);
    return made;
  }
  function end(d, name) {
    const other = steps.get(d.other);
    const there = other && (other.name === name || other.operators.some((o) => o.name === name));
    return there ? element("button", { type: "button", class: "link", onclick: () => choose(d.other) }, name)
      : element("span", {}, name);
  }
  const section = (title, content) => element("details", { open: "" }, element("summary", {}, title), content);
  const bullets = (items) =>
    element("ul", { class: "plain" }, ...items.map((i) => element("li", {}, i)));

  function code(text) {
    const made = element("pre", { tabindex: "0", "aria-label": "source of the kernel" });
    const word = /(\/\/[^\n]*)|\b(const|auto|for|if|else|return|void|extern|float|double|int64_t|int32_t|unsigned|char|bool|static|inline|template|struct|while)\b|\b(\d[\w.]*)/g;
    let at = 0;
    for (const hit of text.matchAll(word)) {
      made.append(text.slice(at, hit.index));
      made.append(element("span", { class: hit[1] ? "comment" : hit[2] ? "word" : "num" }, hit[0]));
      at = hit.index + hit[0].length;
    }
    made.append(text.slice(at));
    return made;
  }

  const svg = document.querySelector(".plan-svg");
  const size = svg && svg.viewBox.baseVal;
  let scale = 1;
  function zoom(to) {
    scale = Math.min(6, Math.max(0.05, to));
    svg.setAttribute("width", size.width * scale);
    svg.setAttribute("height", size.height * scale);
  }
  const canvas = $("canvas");
  // As wide as there is room, but not so small that nobody reads it.
  const fit = () => zoom(Math.max(0.55, Math.min(1.34, (canvas.clientWidth - 20) / size.width)));
  if (svg && size.width) {
    fit();
    $("larger").addEventListener("click", () => zoom(scale * 1.25));
    $("smaller").addEventListener("click", () => zoom(scale / 1.25));
    $("fit").addEventListener("click", fit);
    canvas.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(scale * (e.deltaY < 0 ? 1.1 : 1 / 1.1)); }
    }, { passive: false });
    svg.addEventListener("click", (e) => {
      const box = e.target.closest("[data-box]");
      if (box) chooseBox(box.dataset.box);
    });
    svg.addEventListener("keydown", (e) => {
      const box = e.target.closest("[data-box]");
      if (box && (e.key === "Enter" || e.key === " ")) { e.preventDefault(); chooseBox(box.dataset.box); }
    });
  }
  $("search").addEventListener("input", () => { list(); mark(); });
  $("order").addEventListener("change", () => { list(); mark(); });
  $("all").addEventListener("click", () => { state.only = null; list(); mark(); });
  const kernels = new Set(data.steps.map((s) => s.step)).size;
  if (!data.steps.some((s) => s.seconds)) $("order").value = "id";
  else if (data.steps.length > 40 && kernels < data.steps.length / 3) $("order").value = "kernel";
  list();
  const asked = /^#step-(\d+)$/.exec(location.hash);
  if (asked && steps.has(Number(asked[1]))) choose(Number(asked[1]));
})();
