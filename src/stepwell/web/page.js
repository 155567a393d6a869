// The page's behaviour: the switches of the chart, the details of a relation, light and dark.
// Whatever comes from the report is put in as text, never as markup.
(() => {
  "use strict";

  const find = (id) => document.getElementById(id);
  const report = JSON.parse(find("report-data").textContent);

  /** An element with a text and attributes; every value ends up as text. */
  function make(tag, text, attributes = {}) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

  // Light and dark -------------------------------------------------------------------------------------------------

  const system = matchMedia("(prefers-color-scheme: dark)");
  const repaint = []; // what has to be told when the colours change
  let chosenTheme = null; // forgotten with the page

  const isDark = () => (chosenTheme === null ? system.matches : chosenTheme === "dark");

  function applyTheme() {
    document.documentElement.style.colorScheme = chosenTheme ?? "";
    find("theme").textContent = isDark() ? "Light" : "Dark";
    find("theme").setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
    repaint.forEach((paint) => paint());
  }

  /** A colour of the style sheet as the browser has worked it out: a canvas knows no variables. */
  function colour(name) {
    const sample = make("span");
    sample.style.color = `var(--${name})`;
    document.body.append(sample);
    const value = getComputedStyle(sample).color;
    sample.remove();
    return value;
  }

  find("theme").hidden = false;
  find("theme").addEventListener("click", () => {
    chosenTheme = isDark() ? "light" : "dark";
    applyTheme();
  });
  system.addEventListener("change", applyTheme);

  // Bars -----------------------------------------------------------------------------------------------------------

  const PIXELS_A_BAR = 7; // where there are more bars than fit, the last ones are shown this wide
  const LISTED = 200; // corrections that the list names one by one
  const DAY = 86400;

  const timeText = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);

  /** Digits after the point that tell prices of this size apart. */
  function precisionOf(bars) {
    const highest = bars.high.reduce((most, price) => Math.max(most, Math.abs(price)), 0);
    if (highest === 0 || highest >= 10) return 2;
    return Math.min(8, 3 + Math.max(0, -Math.floor(Math.log10(highest))));
  }

  const NOTHING = { time: [], open: [], high: [], low: [], close: [], volume: [], corrected: [] };

  function startChart(levels) {
    const { createChart, createSeriesMarkers, CandlestickSeries, HistogramSeries, CrosshairMode } = LightweightCharts;
    find("bars").hidden = false;
    const chart = createChart(find("chart"), {
      autoSize: true,
      localization: { locale: "en-GB", dateFormat: "yyyy-MM-dd" },
      layout: { attributionLogo: true, fontSize: 12 },
      crosshair: { mode: CrosshairMode.Normal },
      handleScroll: { vertTouchDrag: false }, // a finger that moves up and down scrolls the page
      timeScale: { rightOffset: 2, timeVisible: true, secondsVisible: false },
    });
    const candles = chart.addSeries(CandlestickSeries, { priceLineVisible: false });
    const volumes = chart.addSeries(
      HistogramSeries,
      { priceFormat: { type: "volume" }, priceLineVisible: false, lastValueVisible: false },
      1,
    );
    chart.panes()[0].setStretchFactor(4);
    chart.panes()[1].setStretchFactor(1);
    const markers = createSeriesMarkers(candles, []);

    let level = levels[0];
    let symbol = level.symbols[0]?.name ?? "";
    let bars = NOTHING;
    let corrected = new Set();

    function fill() {
      const up = colour("up-soft");
      const down = colour("down-soft");
      const mark = colour("corrected");
      candles.setData(
        bars.time.map((time, i) => ({
          time,
          open: bars.open[i],
          high: bars.high[i],
          low: bars.low[i],
          close: bars.close[i],
        })),
      );
      volumes.setData(
        bars.time.map((time, i) => ({
          time,
          value: bars.volume[i],
          color: bars.close[i] >= bars.open[i] ? up : down,
        })),
      );
      markers.setMarkers(
        bars.corrected.map((i) => ({ time: bars.time[i], position: "aboveBar", shape: "circle", color: mark })),
      );
    }

    function paint() {
      const ink = colour("quiet");
      const line = colour("line");
      const grid = colour("grid");
      chart.applyOptions({
        layout: {
          background: { type: "solid", color: colour("card") },
          textColor: ink,
          panes: { separatorColor: line, separatorHoverColor: grid },
        },
        grid: { vertLines: { color: grid }, horzLines: { color: grid } },
        rightPriceScale: { borderColor: line },
        timeScale: { borderColor: line },
      });
      const [up, down] = [colour("up"), colour("down")];
      candles.applyOptions({
        upColor: up,
        borderUpColor: up,
        wickUpColor: up,
        downColor: down,
        borderDownColor: down,
        wickDownColor: down,
      });
      fill();
    }

    /** The numbers of one bar, in words above the chart. */
    function describe(i) {
      const legend = find("legend");
      legend.replaceChildren();
      if (i < 0) return;
      const digits = precisionOf(bars);
      legend.append(make("b", timeText(bars.time[i])));
      for (const name of ["open", "high", "low", "close"]) {
        const part = make("span", `${name} `);
        part.append(make("b", bars[name][i].toFixed(digits)));
        legend.append(part);
      }
      const volume = make("span", "volume ");
      volume.append(make("b", grouped.format(bars.volume[i])));
      legend.append(volume);
      if (corrected.has(i)) legend.append(make("span", "corrected", { class: "mark" }));
    }

    function listCorrections() {
      const count = bars.corrected.length;
      find("corrections-count").textContent = `corrected bars: ${count}`;
      const list = find("corrections-list");
      list.replaceChildren();
      const last = bars.corrected.slice(-LISTED).reverse();
      for (const i of last) {
        const button = make("button", timeText(bars.time[i]), { type: "button" });
        button.addEventListener("click", () => {
          const half = shownAtOnce() / 2;
          chart.timeScale().setVisibleLogicalRange({ from: i - half, to: i + half });
          describe(i);
        });
        const item = make("li");
        item.append(button);
        list.append(item);
      }
      if (count > last.length) list.append(make("li", `and ${count - last.length} earlier ones`));
      if (count === 0) list.append(make("li", "No late row has changed a bar that was shown before."));
    }

    const shownAtOnce = () => Math.max(30, Math.floor(find("chart").clientWidth / PIXELS_A_BAR));

    function showLast() {
      const count = bars.time.length;
      const room = shownAtOnce();
      if (count > room) chart.timeScale().setVisibleLogicalRange({ from: count - room, to: count + 2 });
      else chart.timeScale().fitContent();
    }

    /** Show one level and one of its symbols: the one that was shown, if the level has it. */
    function show(nextLevel, nextSymbol) {
      level = nextLevel;
      const entry = level.symbols.find((each) => each.name === nextSymbol) ?? level.symbols[0];
      symbol = entry?.name ?? "";
      bars = entry?.bars ?? NOTHING;
      corrected = new Set(bars.corrected);

      [...find("levels").children].forEach((button, i) =>
        button.setAttribute("aria-pressed", String(levels[i] === level)),
      );
      const select = find("symbol");
      select.replaceChildren();
      level.symbols.forEach((each, i) => {
        const option = make("option", each.name || "(none)", { value: i });
        option.selected = each.name === symbol;
        select.append(option);
      });
      find("symbol-label").hidden = level.symbols.length === 0 || (level.symbols.length === 1 && symbol === "");

      const precision = precisionOf(bars);
      candles.applyOptions({ priceFormat: { type: "price", precision, minMove: 10 ** -precision } });
      const widths = bars.time.slice(1).map((time, i) => time - bars.time[i]);
      const closest = widths.reduce((least, width) => Math.min(least, width), Infinity);
      chart.applyOptions({ timeScale: { timeVisible: closest < DAY, secondsVisible: closest < 60 } });
      fill();
      showLast();

      const count = bars.time.length;
      const what = [symbol, level.label].filter(Boolean).join(", ");
      find("chart").setAttribute("aria-label", `Candlesticks and volume: ${what}`);
      find("bars-summary").textContent =
        count === 0
          ? `${what}: no bars yet`
          : `${what}: ${grouped.format(count)} ${count === 1 ? "bar" : "bars"}, ` +
            `${timeText(bars.time[0])} to ${timeText(bars.time[count - 1])} UTC`;
      listCorrections();
      describe(count - 1);
    }

    levels.forEach((each, i) => {
      const button = make("button", each.label, { type: "button" });
      if (i < 9) {
        button.append(make("kbd", i + 1, { "aria-hidden": "true" }));
        button.setAttribute("aria-keyshortcuts", i + 1);
      }
      button.addEventListener("click", () => show(each, symbol));
      find("levels").append(button);
    });
    find("symbol").addEventListener("change", (event) => show(level, level.symbols[event.target.value].name));
    find("fit").addEventListener("click", () => chart.timeScale().fitContent());
    chart.subscribeCrosshairMove((event) => {
      const under = event.seriesData.has(candles) ? bars.time.indexOf(event.time) : -1;
      describe(under >= 0 ? under : bars.time.length - 1);
    });

    // Digits choose a level and arrows go to the next, unless the keys mean something where the focus is.
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
      if (event.target.closest?.("select, input, textarea, .scroll")) return;
      const here = levels.indexOf(level);
      const steps = { ArrowLeft: here - 1, ArrowRight: here + 1 };
      const next = levels[/^[1-9]$/.test(event.key) ? event.key - 1 : steps[event.key]];
      if (!next) return;
      event.preventDefault();
      show(next, symbol);
      if (event.target.closest?.("#levels")) find("levels").children[levels.indexOf(next)].focus();
    });

    repaint.push(paint);
    show(level, symbol);
    return {
      candles: () => candles.data().length,
      corrected: () => markers.markers().length,
      level: () => level.name,
      symbol: () => symbol,
    };
  }

  // The graph ------------------------------------------------------------------------------------------------------

  function startGraph(nodes) {
    const panel = find("node-details");
    panel.hidden = false;
    const places = new Map(nodes.map((node, i) => [node.name, i]));
    const children = nodes.map((node) => nodes.filter((each) => each.parents.includes(node.name)).map((each) => each.name));

    /** Buttons that lead to other relations of the graph. */
    function relatives(title, names) {
      if (names.length === 0) return;
      panel.append(make("h4", title));
      for (const name of names) {
        const button = make("button", name, { type: "button" });
        button.disabled = !places.has(name);
        button.addEventListener("click", () => choose(places.get(name)));
        panel.append(button);
      }
    }

    function choose(i) {
      const node = nodes[i];
      document.querySelectorAll(".node").forEach((box) => {
        const chosen = Number(box.dataset.node) === i;
        box.classList.toggle("chosen", chosen);
        box.setAttribute("aria-pressed", String(chosen));
      });
      document.querySelectorAll(".edge").forEach((edge) =>
        edge.classList.toggle("near", Number(edge.dataset.from) === i || Number(edge.dataset.to) === i),
      );
      panel.replaceChildren(make("h3", node.name));
      const list = make("dl");
      const facts = [
        ["kind", node.kind],
        ["state", node.state],
        ["time column", node.timeColumn],
        ["watermark", node.watermark],
        ["lag", node.lag],
        ["rows", node.rows === null ? null : grouped.format(node.rows)],
        ["Delta table", node.behind === null ? null : node.behind ? `${grouped.format(node.behind)} epochs behind` : "up to date"],
        ["late rows", node.lateRows === null ? null : grouped.format(node.lateRows)],
      ];
      for (const [name, value] of facts) {
        const pair = make("div");
        pair.append(make("dt", name), make("dd", value ?? "–"));
        list.append(pair);
      }
      panel.append(list);
      relatives("reads", node.parents);
      relatives("is read by", children[i]);
      panel.append(make("h4", "rules"));
      if (node.rules.length === 0) panel.append(make("div", "–"));
      const rules = make("ul");
      node.rules.forEach((rule) => rules.append(make("li", rule)));
      panel.append(rules);
      if (node.query !== null) panel.append(folded("query", make("pre", node.query)));
      if (node.columns.length > 0) panel.append(folded("columns", table(["name", "type"], node.columns)));
      if (node.firstRows.length > 0) {
        panel.append(folded("first rows", table(node.columns.map(([name]) => name), node.firstRows)));
      }
      if (node.refreshes.length > 0) {
        const worked = node.refreshes.map(([epoch, took, rows]) => [epoch, took.toFixed(0), rows].map(String));
        panel.append(folded("cost by epoch", table(["epoch", "ms", "rows in"], worked)));
      }
      if (node.lineage.length > 0) {
        const ways = make("ul");
        node.lineage.forEach((way) => ways.append(make("li", way)));
        panel.append(folded("lineage", ways));
      }
    }

    /** Something that is shown when its title is clicked. */
    function folded(title, content) {
      const part = make("details");
      part.append(make("summary", title), content);
      return part;
    }

    function table(headings, rows) {
      const whole = make("div");
      whole.className = "scroll";
      const made = make("table");
      const head = make("tr");
      headings.forEach((heading) => head.append(make("th", heading, { scope: "col" })));
      made.append(head);
      for (const row of rows) {
        const line = make("tr");
        row.forEach((value) => line.append(make("td", value)));
        made.append(line);
      }
      whole.append(made);
      return whole;
    }

    document.querySelectorAll(".node").forEach((box) => {
      const i = Number(box.dataset.node);
      const node = nodes[i];
      const parts = [node.name, node.kind, node.state, node.lag && `lag ${node.lag}`];
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", parts.filter(Boolean).join(", "));
      box.addEventListener("click", () => choose(i));
      box.addEventListener("focus", () => choose(i));
      box.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(i);
      });
    });
  }

  // --------------------------------------------------------------------------------------------------------------

  const shown = report.levels.length
    ? startChart(report.levels)
    : { candles: () => 0, corrected: () => 0, level: () => "", symbol: () => "" };
  if (report.nodes.length) startGraph(report.nodes);
  applyTheme();

  /** What can be seen now, for whoever checks the page by a script. */
  window.stepwellReport = {
    ...shown,
    nodes: () => [...document.querySelectorAll(".node")].filter((box) => box.getClientRects().length > 0).length,
  };
})();
