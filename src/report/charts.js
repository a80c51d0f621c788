// charts of lines and points over one axis, drawn as SVG

function ticks(low, high, wanted) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, wanted), power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; ++i) found.push(Number((i * step).toPrecision(12)));
  return found;
}

// seconds to days, in milliseconds; longer steps are months and years
const kSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 259200, 432000, 864000].map((s) => 1000 * s);
const kDay = 86400000;

// dates between two times: days and clocks that people count by, with their labels
function dateTicks(low, high, wanted) {
  const from = dateOf(low), to = dateOf(high), raw = (to - from) / Math.max(1, wanted), step = kSteps.find((s) => s >= raw), found = [];
  if (step) {
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  } else {
    const months = raw / (30 * kDay), power = Math.pow(10, Math.floor(Math.log10(months / 12)));
    const every = [1, 2, 3, 6, 12].find((m) => m >= months) || 12 * power * [1, 2, 5, 10].find((m) => m * power >= months / 12);
    const first = new Date(from);
    for (let m = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / every) * every; ; m += every) {
      const at = Date.UTC(Math.floor(m / 12), m % 12, 1);
      if (at > to) break;
      if (at >= from) found.push(at);
    }
  }
  const clocks = step && step < kDay, dated = found.some((at) => at % kDay === 0);
  const label = (at, i) => {
    const [day, clock] = dateText(at).split(' ');
    if (!step) return day.slice(0, 7);
    return !clocks || at % kDay === 0 ? day : dated || i > 0 ? clock : day + ' ' + clock;
  };
  return found.map((at, i) => ({ at: timeOfDate(at), text: label(at, i) }));
}

// places on an axis, and their labels
function axisTicks(low, high, width, time) {
  if (time && calendar && dateOf(high) - dateOf(low) >= 2000) return dateTicks(low, high, width / 110);
  return ticks(low, high, width / 80).map((at) => ({ at, text: time ? timeText(at) : plain(at) }));
}

function powers(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / 6)), found = [];
  for (let p = first - 1; p <= last; p += every) {
    const between = last - first < 3 ? [1, 2, 5] : [1];
    for (const m of between) found.push(Number((m * Math.pow(10, p)).toPrecision(2)));
  }
  const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  return inside.length > 1 ? inside : ticks(low, high, 4);
}

function rangeOf(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (!isNumber(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 1];
}

function widened([low, high], share) {
  if (low === high) return [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  return [low - share * (high - low), high + share * (high - low)];
}

function allOf(lines, key) {
  return lines.flatMap((line) => line[key]);
}

// index of the value next to x; the values ascend
function nearest(values, x) {
  let left = 0, right = values.length - 1;
  while (right - left > 1) {
    const middle = (left + right) >> 1;
    if (values[middle] <= x) left = middle; else right = middle;
  }
  return Math.abs(values[right] - x) < Math.abs(values[left] - x) ? right : left;
}

// "M .. L .." through what is there; a point alone becomes a dot
function pathOf(line, x, y, log) {
  let text = '', pen = false;
  line.x.forEach((at, i) => {
    const v = line.y[i];
    if (!isNumber(v) || !isNumber(at) || (log && v <= 0)) { pen = false; return; }
    text += (pen ? 'L' : 'M') + x(at).toFixed(1) + ' ' + y(v).toFixed(1);
    if (!pen) text += 'h0';
    pen = true;
  });
  return text;
}

function dotsOf(line, x, y) {
  let text = '';
  line.x.forEach((at, i) => {
    if (isNumber(at) && isNumber(line.y[i])) text += 'M' + x(at).toFixed(1) + ' ' + y(line.y[i]).toFixed(1) + 'h0';
  });
  return text;
}

// an area between two lines
function bandOf(band, x, y) {
  const seen = band.x.map((_, i) => i).filter((i) => isNumber(band.low[i]) && isNumber(band.high[i]));
  const point = (i, v) => x(band.x[i]).toFixed(1) + ' ' + y(v[i]).toFixed(1);
  const d = seen.map((i) => point(i, band.high)).concat([...seen].reverse().map((i) => point(i, band.low)));
  return svg('path', { class: 'area band', style: 'fill:' + band.colour, d: d.length ? 'M' + d.join('L') + 'Z' : '' });
}

function legendOf(lines, values) {
  return el('ul', { class: 'legend' }, lines.map((line, i) => el('li', {},
    svg('svg', { viewBox: '0 0 20 8', 'aria-hidden': 'true' },
      svg('line', { x1: 1, x2: 19, y1: 4, y2: 4, style: 'stroke:' + line.colour, 'stroke-width': 2.4, 'stroke-dasharray': line.dash, 'stroke-linecap': 'round' })),
    named(line.name, 22), values ? el('b', {}, values[i]) : null)));
}

function lineTable(options) {
  const xs = [...new Set(allOf(options.lines, 'x'))].sort((a, b) => a - b);
  const maps = options.lines.map((line) => new Map(line.x.map((x, i) => [x, line.y[i]])));
  const columns = [{ name: options.xLabel || 'x', number: true }]
    .concat(options.lines.map((line) => ({ name: line.name, number: true })));
  return tableOf(columns, xs.map((x) => [options.time ? timeCell(x) : x, ...maps.map((map) => map.get(x) ?? null)]), { label: options.title });
}

// more lines than colours: the largest, or the first, keep theirs; the others are thin and grey
function dressed(lines, most, first) {
  const last = (line) => { const seen = line.y.filter(isNumber); return seen.length ? seen[seen.length - 1] : -Infinity; };
  const rank = lines.map((line, i) => [last(line), i]).sort((a, b) => b[0] - a[0]).map((pair) => pair[1]);
  const chosen = new Set(lines.length > most ? (first ? [...lines.keys()] : rank).slice(0, most) : rank);
  let next = 0;
  return lines.map((line, i) => {
    if (!chosen.has(i)) return { ...line, colour: 'var(--c8)', dash: null, thin: true };
    const k = next++;
    return { ...line, colour: line.colour || colour(k), dash: dashes(k) };
  });
}

/* options: title, xLabel, yLabel, time (whether x is a time), lines [{name, x, y}], height, log, x [low, high], y [low, high], bestX, diagonal,
   square, fill, dots, marks [{x, y, text}], band {x, low, high, colour}, bars [{x, low, high}], onPick(x), onStep(by), live (legend with values at the cursor), most, first (what the first
   lines are; otherwise the largest are thick) */
function lineChart(options) {
  const lines = dressed(options.lines, options.most || 8, options.first), box = el('div', { class: 'chart' }), plot = el('div', { class: options.square ? 'square' : null });
  const legend = el('div');
  const log = options.log && allOf(lines, 'y').some((v) => isNumber(v) && v > 0);
  let cursor = null, state = null;

  function draw() {
    const width = Math.max(260, Math.min(plot.clientWidth || 520, 1400));
    const height = options.square ? Math.min(width, 400) : options.height || 230;
    const margin = { left: 60, right: 14, top: isNumber(options.bestX) ? 18 : 12, bottom: options.xLabel ? 40 : 24 };
    const xr = options.x || rangeOf(allOf(lines, 'x'));
    const ys = allOf(lines, 'y').concat(options.band ? [...options.band.low, ...options.band.high] : []);
    const yr = options.y || (log ? rangeOf(ys.filter((v) => v > 0)) : widened(rangeOf(ys), 0.06));
    const [x0, x1] = xr[0] === xr[1] ? widened(xr, 0) : xr, [y0, y1] = log && yr[0] === yr[1] ? [yr[0] / 2, yr[1] * 2] : yr;
    const w = width - margin.left - margin.right, h = height - margin.top - margin.bottom;
    const x = (v) => margin.left + ((v - x0) / (x1 - x0)) * w;
    const f = log ? Math.log10 : (v) => v;
    const y = (v) => margin.top + h - ((f(v) - f(y0)) / (f(y1) - f(y0))) * h;
    const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': options.label || options.title });
    for (const v of log ? powers(y0, y1) : ticks(y0, y1, h / 36)) {
      root.append(svg('line', { class: 'gridline', x1: margin.left, x2: width - margin.right, y1: y(v), y2: y(v) }),
        svg('text', { x: margin.left - 8, y: y(v) + 3.5, 'text-anchor': 'end' }, plain(v)));
    }
    for (const { at, text } of axisTicks(x0, x1, w, options.time)) {
      root.append(svg('text', { x: x(at), y: margin.top + h + 16, 'text-anchor': 'middle' }, text));
    }
    root.append(svg('line', { class: 'axisline', x1: margin.left, x2: width - margin.right, y1: margin.top + h, y2: margin.top + h }));
    if (options.xLabel) root.append(svg('text', { x: margin.left + w / 2, y: height - 5, 'text-anchor': 'middle' }, options.xLabel));
    if (options.yLabel) {
      root.append(svg('text', { transform: `translate(10 ${margin.top + h / 2}) rotate(-90)`, 'text-anchor': 'middle' }, shortened(options.yLabel, 34)));
    }
    if (options.diagonal) {
      const low = Math.max(x0, y0), high = Math.min(x1, y1);
      root.append(svg('line', { class: 'diagonal', x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
    }
    if (isNumber(options.bestX)) {
      root.append(svg('line', { class: 'best', x1: x(options.bestX), x2: x(options.bestX), y1: margin.top - 2, y2: margin.top + h }),
        svg('text', { class: 'mark', x: x(options.bestX), y: margin.top - 6, 'text-anchor': 'middle' }, 'best: ' + plain(options.bestX)));
    }
    if (options.band) root.append(bandOf(options.band, x, y));
    for (const bar of options.bars || []) {
      root.append(svg('line', { class: 'interval', x1: x(bar.x), x2: x(bar.x), y1: y(bar.low), y2: y(bar.high) }));
    }
    for (const line of [...lines].sort((a, b) => (b.thin ? 1 : 0) - (a.thin ? 1 : 0))) {
      const style = 'stroke:' + line.colour;
      if (options.dots) { root.append(svg('path', { class: 'series dots', style, d: dotsOf(line, x, y) })); continue; }
      if (options.fill && line.x.length > 1) {
        const d = pathOf(line, x, y).replace(/h0/g, '') + `L${x(line.x[line.x.length - 1])} ${y(y0)}L${x(line.x[0])} ${y(y0)}Z`;
        root.append(svg('path', { class: 'area', style: 'fill:' + line.colour, d }));
      }
      root.append(svg('path', { class: 'series' + (line.thin ? ' thin' : ''), style, 'stroke-dasharray': line.dash, d: pathOf(line, x, y, log) }));
      if (options.knots) root.append(svg('path', { class: 'series knots', style, d: dotsOf(line, x, y) }));
    }
    for (const mark of options.marks || []) {
      const left = mark.x > (x0 + x1) / 2;
      root.append(svg('circle', { class: 'ring', cx: x(mark.x), cy: y(mark.y), r: 5, style: 'stroke:var(--c2)' }),
        svg('text', { class: 'mark', x: x(mark.x) + (left ? -10 : 10), y: y(mark.y) + 14, 'text-anchor': left ? 'end' : 'start' }, mark.text));
    }
    const ghost = svg('line', { class: 'ghost', y1: margin.top, y2: margin.top + h, visibility: 'hidden' });
    const hand = svg('line', { class: 'cursor', y1: margin.top, y2: margin.top + h, visibility: 'hidden' });
    root.append(ghost, hand);
    state = { root, x, y, x0, x1, ghost, hand, width, margin, w };
    listen();
    plot.replaceChildren(root);
    if (cursor !== null) setCursor(cursor);
  }

  const timeOf = (event) => {
    const frame = state.root.getBoundingClientRect();
    const at = ((event.clientX - frame.left) / frame.width) * state.width;
    return state.x0 + Math.max(0, Math.min(1, (at - state.margin.left) / state.w)) * (state.x1 - state.x0);
  };

  function listen() {
    const { root } = state;
    root.addEventListener('pointermove', (event) => {
      const at = timeOf(event);
      if (options.onPick && event.buttons === 1) options.onPick(at);
      options.dots ? hintOfDot(event) : hintOfLines(event, at);
    });
    root.addEventListener('pointerleave', () => { hideHint(); state.ghost.setAttribute('visibility', 'hidden'); });
    if (!options.onPick) return;
    root.classList.add('pick');
    root.addEventListener('pointerdown', (event) => { options.onPick(timeOf(event)); });
  }

  function hintOfLines(event, at) {
    const near = lines.map((line) => ({ line, i: line.x.length ? nearest(line.x, at) : -1 }))
      .filter(({ line, i }) => i >= 0 && isNumber(line.y[i]));
    if (!near.length) return hideHint();
    const x = near.map(({ line, i }) => line.x[i]).reduce((a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a));
    state.ghost.setAttribute('x1', state.x(x));
    state.ghost.setAttribute('x2', state.x(x));
    state.ghost.setAttribute('visibility', 'visible');
    const values = near.map(({ line, i }) => [line.y[i], shortened(line.name, 24)]);
    if (values.length > 6) values.sort((a, b) => b[0] - a[0]);
    const rest = values.length > 8 ? '\n\u2026 and ' + (values.length - 8) + ' more' : '';
    const name = options.time ? 't ' + timeText(x) : (options.xLabel || 'x') + ' ' + plain(x);
    showHint(event, name + '\n' + values.slice(0, 8).map(([v, n]) => n + ': ' + plain(v)).join('\n') + rest);
  }

  function hintOfDot(event) {
    const frame = state.root.getBoundingClientRect(), zoom = state.width / frame.width;
    const px = (event.clientX - frame.left) * zoom, py = (event.clientY - frame.top) * zoom;
    let best = 12, text = null;
    for (const line of lines) {
      line.x.forEach((v, i) => {
        if (!isNumber(v) || !isNumber(line.y[i])) return;
        const d = Math.hypot(state.x(v) - px, state.y(line.y[i]) - py);
        if (d < best) { best = d; text = options.xLabel + ' ' + plain(v) + '\n' + options.yLabel + ' ' + plain(line.y[i]); }
      });
    }
    text ? showHint(event, text) : hideHint();
  }

  function setCursor(at) {
    cursor = at;
    if (state && state.hand) {
      state.hand.setAttribute('x1', state.x(at));
      state.hand.setAttribute('x2', state.x(at));
      state.hand.setAttribute('visibility', 'visible');
    }
    if (options.live) {
      const strong = lines.filter((line) => !line.thin);
      legend.replaceChildren(legendOf(strong, strong.map((line) => plain(line.y[nearest(line.x, at)], 3))));
    }
  }

  const strong = lines.filter((line) => !line.thin), rest = lines.length - strong.length;
  if (!options.noLegend && lines.length > (options.live ? 0 : 1)) {
    legend.append(legendOf(strong));
    box.append(legend);
    if (rest) box.append(el('p', { class: 'note' }, `The ${strong.length} ${options.first || 'that end largest'} of ${lines.length}; the others are thin.`));
  }
  box.append(plot);
  if (!options.noTable) box.append(tableBelow(() => lineTable({ ...options, lines })));
  watch(plot, draw);
  return { box, setCursor, draw };
}

// draws once it is in the page, and again when its width changes
const watched = [];
function watch(element, draw) {
  let width = -1;
  const redraw = () => {
    if (element.clientWidth === width || (printing && width > 0)) return;
    width = element.clientWidth;
    draw();
  };
  watched.push(redraw);
  if (window.ResizeObserver) new ResizeObserver(() => requestAnimationFrame(redraw)).observe(element);
}

function card(title, side, ...content) {
  return el('article', { class: 'card' }, el('header', {}, el('h3', {}, title), side || null), content);
}
