"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const steps = new Map(data.steps.map((s) => [s.id, s]));
  const $ = (id) => document.getElementById(id);
  const detail = $("detail"), body = document.querySelector("#steps tbody");
  const state = { only: null, step: null };

  // Texts of the model are inserted as text, never as markup.
  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick") node.addEventListener("click", value);
      else node.setAttribute(name, value);
    }
    node.append(...children.filter((c) => c !== null && c !== undefined));
    return node;
  }

  function seconds(value) {
    if (value === null || value === undefined) return "";
    for (const [limit, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
      if (value >= limit) return `${threeDigits(value / limit)} ${unit}`;
    return `${threeDigits(value / 1e-9)} ns`;
  }
  function bytes(value) {
    if (value === null || value === undefined) return "";
    let unit = 0;
    while (value >= 1000 && unit < 4) { value /= 1024; unit += 1; }
    return `${threeDigits(value)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
  }
  const threeDigits = (value) => (value === 0 ? "0" : String(Number(value.toPrecision(3))));
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const percent = (value) =>
    value === null || value === undefined ? "" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;

  // The steps that the filter and the selection leave, in the chosen order.
  function visibleSteps() {
    const query = $("search").value.trim().toLowerCase();
    const order = $("order").value;
    const visible = data.steps.filter((s) =>
      (state.only === null || state.only.includes(s.id)) &&
      (!query || [s.name, s.step, ...s.operators.map((o) => `${o.name} ${o.call}`)]
        .some((text) => text.toLowerCase().includes(query))));
    if (order !== "id") visible.sort((a, b) => (b[order] || 0) - (a[order] || 0) || a.id - b.id);
    return visible;
  }

  // One row for steps that run the same kernel, or the same routine with the same sizes.
  function groupedByKernel() {
    const groups = new Map();
    for (const s of visibleSteps()) groups.set(s.step, [...(groups.get(s.step) || []), s]);
    const sum = (members, key) => members.reduce((total, s) => total + (s[key] || 0), 0);
    const rows = [...groups.values()].map((members) => ({
      members, name: members[0].kernel ? members[0].kernel.name : members[0].step,
      kind: members[0].kind, share: sum(members, "share"),
      seconds: members[0].seconds === null ? null : sum(members, "seconds"),
      bytes: members.some((s) => s.bytes === null) ? null : sum(members, "bytes"),
      of_copy: sum(members, "seconds")
        ? members.reduce((t, s) => t + (s.of_copy || 0) * (s.seconds || 0), 0) / sum(members, "seconds")
        : null,
    }));
    return rows.sort((a, b) => b.share - a.share || b.members.length - a.members.length);
  }

  function listGroups() {
    const rows = groupedByKernel(), most = Math.max(...rows.map((r) => r.share), 1e-9);
    body.replaceChildren(...rows.map((r) => {
      const ids = r.members.map((s) => s.id);
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
      element("td", { class: "number", "data-label": "of copy speed" }, s.bytes ? percent(s.of_copy) : ""));
  }

  function list() {
    $("all").hidden = state.only === null;
    if ($("order").value === "kernel") { listGroups(); return; }
    const most = Math.max(...data.steps.map((s) => s.share || 0), 1e-9);
    body.replaceChildren(...visibleSteps().map((s) => {
      const button = element("button", { type: "button", onclick: () => choose(s.id) }, s.name);
      const line = row(s, button, most);
      line.dataset.step = s.id;
      line.classList.toggle("chosen", s.id === state.step);
      return line;
    }));
  }

  function mark() {
    for (const box of document.querySelectorAll("[data-box]")) {
      const ids = data.boxes[box.dataset.box] || [];
      const hit = state.step !== null ? ids.includes(state.step)
        : state.only !== null && ids.length === state.only.length && ids[0] === state.only[0];
      box.classList.toggle("chosen", hit && !/^g\d+p/.test(box.dataset.box));  // mark the kernel's frame, not each part
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
    const list = element("dl", {});
    for (const [name, value] of pairs)
      if (value !== "" && value !== null && value !== undefined)
        list.append(element("dt", {}, name), element("dd", {}, value));
    return list;
  }

  function summary(ids) {
    const chosen = ids.map((id) => steps.get(id));
    const total = (key) => chosen.reduce((sum, s) => sum + (s[key] || 0), 0);
    return [
      element("h2", {}, `${chosen.length} steps`),
      facts([
        ["from", chosen[0].name], ["to", chosen[chosen.length - 1].name],
        ["time", chosen[0].seconds === null ? "" : `${seconds(total("seconds"))}, ${percent(total("share"))}`],
        ["bytes", chosen.some((s) => s.bytes === null) ? "" : bytes(total("bytes"))],
        ["operators", String(chosen.reduce((sum, s) => sum + s.operators.length, 0))],
      ]),
      element("p", { class: "hint" }, "The list above now shows only these steps; select one of them."),
    ];
  }

  function speed(s) {
    if (!s.seconds || !s.bytes) return "";
    const text = element("span", {}, `${threeDigits(s.bytes / s.seconds / 1e9)} GB/s`);
    if (s.of_copy !== null) {
      text.append(`, ${percent(s.of_copy)} of the speed of copying as many bytes on this machine `,
        element("meter", { min: 0, max: 1, low: 0.4, high: 0.7, optimum: 1, value: Math.min(1, s.of_copy),
          "aria-label": "share of the speed of a copy" }));
    }
    if (s.flops) text.append(`; ${threeDigits(s.flops / s.seconds / 1e9)} GFLOP/s`);
    return text;
  }

  function describe(s) {
    const parts = [
      element("h2", {}, s.name),
      facts([
        ["kind", s.kind], ["runs", s.kernel ? s.kernel.name : s.routine || s.step],
        ["time", s.seconds === null ? "" : `${seconds(s.seconds)}, ${percent(s.share)} of the run`],
        ["bytes", bytes(s.bytes)], ["speed", speed(s)],
        ["threads", s.seconds === null ? "" : String(s.threads)],
        ...(s.properties || []),
      ]),
    ];
    if (s.parts && s.parts.length) parts.push(section(`${s.parts.length} parts`, table(s.parts)));
    parts.push(section("neighbours that are not fused, and why", s.refused && s.refused.length
      ? bullets(s.refused.map(reason)) : element("p", { class: "hint" },
        "None: its neighbours are inputs, constants and outputs of the model.")));
    if (s.kernel) parts.push(section("kernel", code(data.sources[s.kernel.key])));
    if (s.schedule && s.schedule.length) parts.push(section("schedule", bullets(s.schedule)));
    if (s.operators.length) parts.push(section(counted(s.operators.length, "operator"),
      bullets(s.operators.map((o) => (o.call === o.name ? o.name : `${o.name}: ${o.call}`)))));
    if (s.reads.length || s.writes.length) parts.push(section("reads and writes", bullets([
      ...s.reads.map((v) => `reads ${v.name}  ${v.type}`),
      ...s.writes.map((v) => `writes ${v.name}  ${v.type}`)])));
    return parts;
  }

  // The parts of a kernel in order, without columns that are empty for all of them.
  function table(parts) {
    const lines = (texts) => texts.map((text) => element("div", {}, text));
    const outputs = (p) => p.outputs.flatMap((v) => [
      element("div", {}, `${v.name}: ${v.type}`),
      v.region ? element("div", { class: "hint" },
        `per tile: ${v.region}${v.nbytes ? `, ${v.nbytes}` : ""}, in ${v.location}`) : null]);
    const columns = [
      ["part", (p, k) => [element("div", {}, `${k} ${p.kind}`),
        p.composition ? element("div", { class: "hint" }, p.composition) : null]],
      ["operators", (p) => lines([p.operators.join(", ")])],
      ["outputs", outputs],
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
    const text = element("span", {}, end(d, d.producer), " → ", end(d, d.consumer), `: ${d.reason}`);
    if (d.way_out) text.append(` — what to do: ${d.way_out}`);
    return text;
  }
  function end(d, name) {
    const other = steps.get(d.other);
    const isOther = other && (other.name === name || other.operators.some((o) => o.name === name));
    return isOther ? element("button", { type: "button", class: "link", onclick: () => choose(d.other) }, name)
      : element("span", {}, name);
  }
  const section = (title, content) => element("details", { open: "" }, element("summary", {}, title), content);
  const bullets = (items) =>
    element("ul", { class: "plain" }, ...items.map((i) => element("li", {}, i)));

  function code(text) {
    const block = element("pre", { tabindex: "0", "aria-label": "source of the kernel" });
    const word = /(\/\/[^\n]*)|\b(const|auto|for|if|else|return|void|extern|float|double|int64_t|int32_t|unsigned|char|bool|static|inline|template|struct|while)\b|\b(\d[\w.]*)/g;
    let at = 0;
    for (const hit of text.matchAll(word)) {
      block.append(text.slice(at, hit.index));
      block.append(element("span", { class: hit[1] ? "comment" : hit[2] ? "word" : "num" }, hit[0]));
      at = hit.index + hit[0].length;
    }
    block.append(text.slice(at));
    return block;
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
  // As wide as the window allows, but not too small to read.
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
  const linked = /^#step-(\d+)$/.exec(location.hash);
  if (linked && steps.has(Number(linked[1]))) choose(Number(linked[1]));
})();
