// the view of W(t): the signal, the matrices, their norms and the outputs under one cursor

// one lane per channel, each on its own scale, all on one axis of time
function signalLanes(view, span, onPick) {
  const many = view.channels.length, first = 6, chosen = new Set([...Array(Math.min(first, many)).keys()]);
  const plot = el('div', { class: 'chart' });
  let cursor = null, state = null;

  function lane(root, c, top, high, x, width) {
    const y01 = widened(rangeOf(view.values.map((row) => row[c])), 0.08);
    const y = (v) => top + high - ((v - y01[0]) / (y01[1] - y01[0])) * high;
    const line = { x: view.times, y: view.values.map((row) => row[c]) };
    const seen = { x: [], y: [] };
    line.x.forEach((t, i) => { if (isNumber(line.y[i])) { seen.x.push(t); seen.y.push(line.y[i]); } });
    const style = 'stroke:var(--c1)';
    root.append(svg('line', { class: 'gridline', x1: 60, x2: width - 14, y1: top + high, y2: top + high }));
    if (seen.x.length < line.x.length) root.append(svg('path', { class: 'series gap' + (line.x.length > 100 ? ' dense' : ''), style, d: pathOf(seen, x, y) }));
    root.append(svg('path', { class: 'series', style, d: pathOf(line, x, y) }));
    if (seen.x.length <= 60) root.append(svg('path', { class: 'series knots', style, d: dotsOf(seen, x, y) }));
    const range = rangeOf(seen.y);
    root.append(svg('text', { x: 52, y: top + 8, 'text-anchor': 'end' }, seen.x.length ? plain(range[1], 3) : 'none'),
      svg('text', { x: 52, y: top + high, 'text-anchor': 'end' }, seen.x.length ? plain(range[0], 3) : ''),
      svg('text', { class: 'name', x: 62, y: top - 3 }, svg('title', {}, view.channels[c]), shortened(view.channels[c], 40)));
    const value = svg('text', { class: 'name', x: width - 20, y: top - 3, 'text-anchor': 'end' });
    root.append(value);
    return { c, value, seen };
  }

  function draw() {
    const width = Math.max(260, plot.clientWidth || 520), high = 34, every = high + 24, shown = [...chosen].sort((a, b) => a - b);
    const height = shown.length * every + 40;
    const x = (t) => 60 + ((t - span[0]) / (span[1] - span[0])) * (width - 74);
    const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'pick',
      'aria-label': 'Control signal: ' + shown.map((c) => view.channels[c]).join(', ') + ' over time' });
    const lanes = shown.map((c, i) => lane(root, c, i * every + 16, high, x, width));
    for (const { at, text } of axisTicks(span[0], span[1], width - 74, true)) {
      root.append(svg('text', { x: x(at), y: height - 22, 'text-anchor': 'middle' }, text));
    }
    root.append(svg('text', { x: width / 2 + 20, y: height - 5, 'text-anchor': 'middle' }, timeLabel(view)));
    const hand = svg('line', { class: 'cursor', y1: 4, y2: height - 36, visibility: 'hidden' });
    root.append(hand);
    const timeOf = (event) => {
      const frame = root.getBoundingClientRect(), at = ((event.clientX - frame.left) / frame.width) * width;
      return span[0] + Math.max(0, Math.min(1, (at - 60) / (width - 74))) * (span[1] - span[0]);
    };
    root.addEventListener('pointerdown', (event) => onPick(timeOf(event)));
    root.addEventListener('pointermove', (event) => {
      const t = timeOf(event);
      if (event.buttons === 1) onPick(t);
      const i = nearest(view.times, t);
      showHint(event, 't ' + timeText(view.times[i]) + '\n' +
        shown.map((c) => shortened(view.channels[c], 24) + ': ' + (isNumber(view.values[i][c]) ? plain(view.values[i][c]) : 'missing')).join('\n'));
    });
    root.addEventListener('pointerleave', hideHint);
    state = { lanes, hand, x };
    plot.replaceChildren(root);
    if (cursor !== null) setCursor(cursor);
  }

  // a channel keeps its last observation until the next one
  function setCursor(t) {
    cursor = t;
    if (!state) return;
    state.hand.setAttribute('x1', state.x(t));
    state.hand.setAttribute('x2', state.x(t));
    state.hand.setAttribute('visibility', 'visible');
    for (const { value, seen } of state.lanes) {
      let last = -1;
      for (let i = 0; i < seen.x.length && seen.x[i] <= t + 1e-9 * (1 + Math.abs(t)); ++i) last = i;
      value.textContent = last < 0 ? 'not seen yet' : plain(seen.y[last], 3);
    }
  }

  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'Channels shown' }, many < 2 ? null : view.channels.map((name, c) =>
    el('button', { type: 'button', 'aria-pressed': String(chosen.has(c)), title: name, onclick: (event) => {
      chosen.has(c) ? chosen.size > 1 && chosen.delete(c) : chosen.add(c);
      event.currentTarget.setAttribute('aria-pressed', String(chosen.has(c)));
      draw();
    } }, shortened(name, 20))));
  const table = tableBelow(() => tableOf([{ name: timeLabel(view), number: true }].concat(view.channels.map((name) => ({ name, number: true }))),
    view.times.map((t, i) => [timeCell(t), ...view.values[i]]), { label: 'Control signal' }));
  const side = el('span', { class: 'note no-print' }, many > first ? `${first} of ${many} at first: choose below` : 'the last observation at the cursor');
  watch(plot, draw);
  return { box: card('Control signal', side, chips, plot, table), setCursor };
}

function timeLabel(view) {
  return view.time_unit && !calendar ? 'time (' + view.time_unit + ')' : 'time';
}

function withUnit(t, unit) {
  if (calendar) return timeText(t);
  const known = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year', 'step'];
  return plain(t) + (unit ? ' ' + unit + (known.includes(unit) && t !== 1 ? 's' : '') : '');
}

function largestOf(list) {
  let most = 0;
  for (const v of list) if (Math.abs(v) > most) most = Math.abs(v);
  return most;
}

// the matrices of a layer, one picture per head
function matrices(view, onCell) {
  const layers = view.frames.layers, box = el('div', { class: 'heads' });
  const legend = el('canvas', { width: kLevels, height: 1, 'aria-hidden': 'true' });
  const low = el('span'), high = el('span'), shape = el('span');
  const largest = layers.map((layer) => Math.max(...layer.w.map(largestOf)));
  let layer = 0, frame = 0, fixed = true, figures = [];

  const size = () => layers[layer].rows * layers[layer].columns;
  const head = (h) => layers[layer].w[frame].slice(h * size(), (h + 1) * size());
  const scale = () => (fixed ? largest[layer] : largestOf(layers[layer].w[frame]));
  const norm = (h) => Math.sqrt(head(h).reduce((sum, v) => sum + v * v, 0));

  // few heads are shown large, many small; rows of equal length look best
  function build() {
    const { heads, rows, columns } = layers[layer];
    const across = heads === 1 ? 1 : heads <= 4 ? 2 : heads <= 9 ? 3 : heads <= 16 ? 4 : heads <= 24 ? 6 : 8;
    const widest = heads === 1 ? 420 : 240;
    box.className = 'heads' + (across > 4 ? ' small' : '');
    box.style.gridTemplateColumns = `repeat(${across}, minmax(0, ${widest}px))`;
    const times = Math.max(1, Math.ceil((heads === 1 ? 640 : 1000 / across) / Math.max(rows, columns)));
    shape.textContent = `${rows} rows (values) by ${columns} columns (keys)`;
    figures = [...Array(heads).keys()].map((h) => {
      const canvas = el('canvas', { width: columns * times, height: rows * times, role: 'img' });
      const number = el('span');
      const cellOf = (event) => {
        const frame = canvas.getBoundingClientRect();
        return [Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - frame.top) / frame.height) * rows))),
          Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - frame.left) / frame.width) * columns)))];
      };
      canvas.addEventListener('pointermove', (event) => {
        const [r, c] = cellOf(event);
        showHint(event, `head ${h + 1}, row ${r + 1}, column ${c + 1}\n${plain(head(h)[r * columns + c])}\nclick: this weight over time`);
      });
      canvas.addEventListener('pointerleave', hideHint);
      canvas.addEventListener('click', (event) => onCell(layer, h, ...cellOf(event)));
      return { canvas, number, small: el('canvas', { width: columns, height: rows }) };
    });
    box.replaceChildren(...figures.map(({ canvas, number }, h) =>
      el('figure', {}, canvas, el('figcaption', {}, el('span', {}, across > 4 ? String(h + 1) : 'head ' + (h + 1)), number))));
    paint();
  }

  function paint() {
    const { rows, columns, heads } = layers[layer], colours = divergingTable(), most = scale();
    figures.forEach(({ canvas, number, small }, h) => {
      const context = small.getContext('2d'), image = context.createImageData(columns, rows);
      head(h).forEach((v, i) => {
        // what is not a number is not zero either
        if (!isNumber(v)) { image.data.set([128, 128, 128, 255], 4 * i); return; }
        const level = levelOf(v, most);
        image.data.set([colours[3 * level], colours[3 * level + 1], colours[3 * level + 2], 255], 4 * i);
      });
      context.putImageData(image, 0, 0);
      const large = canvas.getContext('2d');
      large.imageSmoothingEnabled = false;
      large.drawImage(small, 0, 0, canvas.width, canvas.height);
      number.textContent = (heads > 16 ? '' : '\u2016W\u2016 ') + plain(norm(h), heads > 16 ? 2 : 3);
      canvas.setAttribute('aria-label', `W of layer ${layer + 1}, head ${h + 1}, ${rows} by ${columns}, norm ${plain(norm(h), 3)}`);
    });
    const strip = legend.getContext('2d'), image = strip.createImageData(kLevels, 1);
    for (let i = 0; i < kLevels; ++i) image.data.set([colours[3 * i], colours[3 * i + 1], colours[3 * i + 2], 255], 4 * i);
    strip.putImageData(image, 0, 0);
    low.textContent = plain(-most, 3);
    high.textContent = '+' + plain(most, 3);
  }

  function matrixTable() {
    const { heads, rows, columns } = layers[layer], place = el('div');
    const show = (h) => place.replaceChildren(tableOf(
      [{ name: 'row' }].concat([...Array(columns).keys()].map((c) => ({ name: String(c + 1), number: true }))),
      [...Array(rows).keys()].map((r) => [String(r + 1), ...head(h).slice(r * columns, (r + 1) * columns)]), { label: 'W of head ' + (h + 1) }));
    show(0);
    return el('div', {}, el('label', { class: 'note' }, `t = ${timeText(view.frames.times[frame])}, `,
      choice([...Array(heads).keys()].map((h) => 'head ' + (h + 1)), show)), place);
  }

  const choose = layers.length > 1 ? el('label', { class: 'note' }, 'Layer ', choice(layers.map((_, i) => String(i + 1)), (i) => {
    layer = i;
    build();
    onLayer.forEach((tell) => tell(i));
  })) : null;
  const onLayer = [];
  const scaling = el('label', { class: 'note' }, 'Scale ', choice(['of all times', 'of this moment'], (i) => { fixed = i === 0; paint(); }));
  const state = view.of === 'state';
  const content = card(state ? 'State' : 'W(t)', el('span', { class: 'no-print' }, choose, ' ', scaling), box,
    el('div', { class: 'scale' }, low, legend, high),
    el('p', { class: 'note' }, state ? 'The numbers of the state: ' : 'Each picture is the fast weight matrix of a head: ', shape,
      '. Blue is negative, orange positive; \u2016W\u2016 is the', state ? ' state\u2019s norm.' : ' Frobenius norm.'),
    tableBelow(matrixTable));
  build();
  return { box: content, onLayer, paint, setFrame: (i) => { frame = i; paint(); } };
}

function choice(names, onChoice) {
  const select = el('select', {}, names.map((name, i) => el('option', { value: i }, name)));
  select.addEventListener('change', () => onChoice(Number(select.value)));
  return select;
}

// the slider, the buttons and the clock
function timeControl(view, onFrame) {
  const times = view.frames.times, last = times.length - 1;
  const slider = el('input', { type: 'range', min: 0, max: last, step: 1, value: 0, 'aria-label': 'Time', class: 'no-print' });
  const clock = el('output', { 'aria-live': 'off' });
  const play = el('button', { type: 'button', class: 'play' });
  let speed = 1, timer = null;
  const words = () => 't = ' + withUnit(times[Number(slider.value)], view.time_unit);

  function set(i) {
    slider.value = Math.max(0, Math.min(last, i));
    slider.setAttribute('aria-valuetext', `${words()}, ${Number(slider.value) + 1} of ${last + 1}`);
    clock.textContent = words();
    onFrame(Number(slider.value));
  }
  function label() {
    play.textContent = timer === null ? '\u25B6 Play' : '\u23F8 Pause';
  }
  function stop() {
    if (timer !== null) window.clearInterval(timer);
    timer = null;
    label();
  }
  function start() {
    if (Number(slider.value) === last) set(0);
    // the whole series in about eight seconds, with at most 25 pictures a second
    const pause = Math.max(40, 8000 / Math.max(1, last) / speed), by = Math.max(1, Math.round((last * 40 * speed) / 8000));
    timer = window.setInterval(() => {
      set(Number(slider.value) + (pause === 40 ? by : 1));
      if (Number(slider.value) >= last) stop();
    }, pause);
    label();
  }
  play.addEventListener('click', () => (timer === null ? start() : stop()));
  slider.addEventListener('input', () => { stop(); set(Number(slider.value)); });
  const step = (by, name, sign) => el('button', { type: 'button', 'aria-label': name, onclick: () => { stop(); set(Number(slider.value) + by); } }, sign);
  const rate = el('label', {}, 'Speed ', choice(['1\u00D7', '2\u00D7', '0.5\u00D7'], (i) => {
    speed = [1, 2, 0.5][i];
    if (timer !== null) { stop(); start(); }
  }));
  label();
  const box = el('div', { class: 'control', role: 'group', 'aria-label': 'Time of W' },
    play, step(-1, 'One step back', '\u2039'), step(1, 'One step on', '\u203A'), slider, clock, rate);
  return { box, set, stop, pick: (t) => { stop(); set(nearest(times, t)); }, by: (n) => { stop(); set(Number(slider.value) + n); }, at: () => Number(slider.value), last };
}

function keys(element, control) {
  element.addEventListener('keydown', (event) => {
    // lists of choices and the slider have arrows of their own
    if (['INPUT', 'SELECT', 'TEXTAREA'].includes(event.target.tagName)) return;
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -control.last, End: control.last };
    if (!(event.key in moves) || event.target.closest('.table-of')) return;
    event.preventDefault();
    control.by(moves[event.key]);
  });
}

// a weight that was clicked, over time
function weightTrace(view, span, onPick) {
  const place = el('div', { hidden: true });
  let chart = null, cursor = 0;
  function show(l, h, r, c) {
    const layer = view.frames.layers[l], at = (h * layer.rows + r) * layer.columns + c;
    chart = lineChart({ title: 'One weight', x: span, height: 150, time: true, onPick, noLegend: true, xLabel: timeLabel(view), yLabel: 'weight',
      lines: [{ name: 'weight', x: view.frames.times, y: layer.w.map((w) => w[at]), colour: colour(3) }] });
    place.hidden = false;
    place.replaceChildren(card('One weight over time',
      el('span', { class: 'note' }, `layer ${l + 1}, head ${h + 1}, row ${r + 1}, column ${c + 1}`), chart.box));
    chart.draw();
    chart.setCursor(cursor);
  }
  return { box: place, show, setCursor: (t) => { cursor = t; if (chart) chart.setCursor(t); } };
}

function overTime(view, names, times, values, options) {
  return lineChart({ ...options, time: true, xLabel: timeLabel(view), live: true,
    lines: names.map((name, i) => ({ name, x: times, y: values.map((row) => row[i]) })) });
}

// those of the layer that is shown, where there is one per head
function normsOverTime(view, span, onPick) {
  const { names, values } = view.norms, layers = view.frames.layers, place = el('div');
  const perHead = names.length === layers.reduce((sum, layer) => sum + layer.heads, 0);
  let chart = null, cursor = span[0];
  function setLayer(l) {
    const from = perHead ? layers.slice(0, l).reduce((sum, layer) => sum + layer.heads, 0) : 0;
    const to = perHead ? from + layers[l].heads : names.length;
    chart = overTime(view, names.slice(from, to), view.frames.times, values.map((row) => row.slice(from, to)),
      { title: 'Norms of the fast weights over time', yLabel: 'Frobenius norm', x: span, onPick, height: 190 });
    place.replaceChildren(chart.box);
    if (place.isConnected) chart.draw();
    chart.setCursor(cursor);
  }
  setLayer(0);
  return { box: card(view.of === 'state' ? 'Norm of the state' : 'Norms of W', null, place), setLayer, setCursor: (t) => { cursor = t; chart.setCursor(t); } };
}

function fastWeights(view) {
  const times = view.frames.times;
  const ends = rangeOf([...times, ...(view.times || []), ...(view.outputs ? view.outputs.times : [])]);
  const span = ends[0] === ends[1] ? widened(ends, 0) : ends;
  const pick = (t) => control.pick(t);
  const charts = [], left = el('div'), right = el('div');
  if (view.values && view.values.length) charts.push(signalLanes(view, span, pick));
  if (view.outputs && view.outputs.values.length) {
    const chart = overTime(view, view.outputs.names, view.outputs.times, view.outputs.values, { title: 'Outputs over time', yLabel: view.outputs.label || 'output', x: span, onPick: pick, most: 6, height: 190 });
    charts.push({ box: card('Outputs', null, chart.box), setCursor: chart.setCursor });
  }
  const trace = weightTrace(view, span, pick), pictures = matrices(view, trace.show);
  charts.forEach((chart) => left.append(chart.box));
  right.append(pictures.box);
  if (view.norms && view.norms.values.length) {
    const norms = normsOverTime(view, span, pick);
    right.append(norms.box);
    charts.push(norms);
    pictures.onLayer.push(norms.setLayer);
  }
  right.append(trace.box);
  charts.push(trace);
  const control = timeControl(view, (i) => {
    pictures.setFrame(i);
    charts.forEach((chart) => chart.setCursor(times[i]));
  });
  const explained = view.importance && view.importance.values.length ? importanceCards(view, span, pick) : null;
  if (explained) {
    charts.push(explained);
    left.append(explained.boxes[0], explained.boxes[1]);
    right.append(explained.boxes[2]);
  }
  const columns = el('div', { class: 'view' }, left, right), box = el('div', {}, control.box, columns);
  if (!left.children.length) { left.remove(); columns.style.gridTemplateColumns = 'minmax(0, 1fr)'; }
  keys(box, control);
  // begins, and prints, with what the whole series has left in W
  control.set(control.last);
  return { box, paint: () => { pictures.paint(); if (explained) explained.paint(); }, stop: control.stop };
}
