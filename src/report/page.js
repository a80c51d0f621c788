// the sections of the page, in their order

const data = JSON.parse(document.getElementById('data').textContent);
if (data.calendar) setCalendar(data.calendar, [data.fast_weights, ...(data.series || []), ...(data.forecasts || [])].flatMap((view) => (view ? view.times : [])));

function facts(pairs) {
  return el('dl', { class: 'facts' }, pairs.map(([name, value]) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, named(formatted(value), 160)))));
}


function headline(items) {
  return el('dl', { class: 'headline' }, items.map((item) =>
    el('div', {}, el('dt', {}, item.name), el('dd', {}, formatted(item.value, item.format)))));
}

const ofPart = (part) => (part ? ' (' + part + ')' : '');

function curveCard(curve) {
  const chart = lineChart({ title: curve.title, xLabel: curve.x_label, yLabel: curve.y_label, log: curve.log,
    bestX: curve.best_x, lines: curve.lines });
  return card(curve.title, curve.log ? el('span', { class: 'note' }, 'logarithmic') : null, chart.box);
}

function metricsCard(metrics) {
  const columns = [{ name: 'metric' }].concat(metrics.columns.map((name) => ({ name, number: true })));
  const short = (row, v) => (row.format === 'percent' ? (100 * v).toFixed(1) : plain(v, 3));
  const interval = (row, i) => {
    const ends = row.intervals && row.intervals[i];
    return ends && ends.length === 2 && ends.every(isNumber) ? ` ${short(row, ends[0])}\u2013${short(row, ends[1])}` : '';
  };
  const cell = (row, v, i) => ({ sort: v, make: () => el('span', {}, formatted(v, row.format), el('span', { class: 'range' }, interval(row, i))) });
  const rows = metrics.rows.map((row) => [row.name, ...row.values.map((v, i) => cell(row, v, i))]);
  const intervals = metrics.rows.some((row) => row.intervals && row.intervals.some((ends) => ends && ends.length));
  const at = data.roc && data.roc.threshold, other = at && Math.abs(at.value - 0.5) > 5e-4;
  return card('Metrics', intervals ? el('span', { class: 'note' }, 'with 95\u2009% intervals') : null, tableOf(columns, rows, { label: 'Metrics' }),
    other ? el('p', { class: 'note' }, 'Accuracy, balanced accuracy and F1 use the threshold 0.5, the other cards that of the run, ' + plain(at.value, 3) + '.') : null);
}

// only reports beside this one are linked
function runsCard(runs) {
  const columns = [{ name: 'run' }].concat(runs.columns.map((name, i) => ({ name, number: true, format: runs.formats[i] })));
  const link = (run) => (/^[\w-]+\/report\.html$/.test(run.href) ? el('a', { href: run.href }, run.name) : run.name);
  return card('Runs' + ofPart(runs.part), null, tableOf(columns, runs.runs.map((run) => [link(run), ...run.values]), { label: 'Runs' }));
}

function confusionCard(confusion) {
  const { classes, counts } = confusion, many = classes.length > 12;
  const sums = counts.map((row) => row.reduce((a, b) => a + b, 0));
  const cells = [];
  const body = counts.map((row, i) => el('tr', {}, el('th', { scope: 'row', title: classes[i] }, shortened(classes[i], 18)),
    row.map((n, j) => {
      const share = sums[i] ? n / sums[i] : 0;
      // what is wrong is rare: it gets a stronger colour for the same share
      const strength = i === j ? 0.85 * share : Math.min(0.9, 0.12 + 1.1 * Math.sqrt(share));
      const cell = el('td', { class: [i === j ? '' : 'off', n === 0 ? 'none' : '', strength > 0.55 ? 'strong' : ''].join(' ').trim(),
        style: `--a:${n ? Math.max(0.08, strength).toFixed(3) : 0}`,
        title: `${classes[i]} taken for ${classes[j]}: ${n} of ${sums[i]} (${formatted(share, 'percent')})` });
      cells.push([cell, n, share]);
      return cell;
    })));
  const show = (as) => cells.forEach(([cell, n, share]) => {
    cell.textContent = n === 0 ? (many ? '' : '0') : as === 1 ? (100 * share).toFixed(0) + (many ? '' : '\u2009%') : n;
  });
  show(0);
  const table = el('table', { class: 'confusion' + (many ? ' many' : '') },
    el('thead', {}, el('tr', {}, el('td', { style: 'background:none' }), el('th', { class: 'axis', colspan: classes.length, scope: 'colgroup' }, 'predicted')),
      el('tr', {}, el('th', { class: 'axis' }, 'true'), classes.map((name) => el('th', { scope: 'col', title: name }, shortened(name, many ? 14 : 12))))),
    el('tbody', {}, body));
  const right = counts.reduce((sum, row, i) => sum + row[i], 0), all = sums.reduce((a, b) => a + b, 0);
  return card('Confusion' + ofPart(confusion.part), el('label', { class: 'note no-print' }, 'Show ', choice(['counts', 'shares of a row'], show)),
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Confusion matrix' }, table),
    el('p', { class: 'note' }, confusion.note ? confusion.note + ' ' : '',
      `${grouped(right)} of ${grouped(all)} are right (${formatted(all ? right / all : null, 'percent')}). Colour is the share within a row.`));
}

function rocCard(roc) {
  const at = roc.threshold;
  const chart = lineChart({ title: 'ROC curve', square: true, x: [0, 1], y: [0, 1.02], diagonal: true, fill: true,
    xLabel: 'false positive rate', yLabel: 'true positive rate',
    lines: [{ name: 'true positive rate', x: roc.false_positive, y: roc.true_positive }],
    marks: at ? [{ x: at.false_positive, y: at.true_positive, text: 'threshold ' + plain(at.value, 3) }] : [] });
  return card('ROC curve' + ofPart(roc.part), el('span', { class: 'note' }, 'area ' + formatted(roc.auc)), chart.box);
}

function classesCard(classes) {
  const columns = [{ name: 'class', long: 24 }, ...['precision', 'recall', 'F1'].map((name) => ({ name, number: true, format: 'percent' })),
    ...['samples', 'predicted'].map((name) => ({ name, number: true, format: 'integer' }))];
  const rows = classes.rows.map((row) => [row.name, row.precision, row.recall, row.f1, row.samples, row.predicted]);
  const box = card('Precision and recall' + ofPart(classes.part), null, tableOf(columns, rows, { sortable: true, most: 12, label: 'Classes' }),
    classes.note ? el('p', { class: 'note' }, classes.note) : null);
  box.classList.add('wide');
  return box;
}

function classRocCard(roc) {
  const chart = lineChart({ title: 'ROC curves of classes', square: true, x: [0, 1], y: [0, 1.02], diagonal: true,
    xLabel: 'false positive rate', yLabel: 'true positive rate',
    lines: roc.curves.map((curve) => ({ name: `${shortened(curve.name, 14)} (${plain(curve.auc, 3)})`, x: curve.false_positive, y: curve.true_positive })) });
  return card('ROC curves' + ofPart(roc.part), el('span', { class: 'note' }, 'each class against the rest (area)'), chart.box,
    roc.note ? el('p', { class: 'note' }, roc.note) : null);
}

function calibrationCard(calibration) {
  const seen = calibration.count.map((n, i) => [n, i]).filter(([n, i]) => n > 0 && isNumber(calibration.predicted[i])).map((pair) => pair[1]);
  const of = (key) => seen.map((i) => calibration[key][i]);
  const chart = lineChart({ title: 'Calibration', square: true, x: [0, 1], y: [0, 1.02], diagonal: true, knots: true, noTable: true,
    bars: calibration.low && calibration.low.length ? seen.map((i) => ({ x: calibration.predicted[i], low: calibration.low[i], high: calibration.high[i] })) : [],
    xLabel: shortened(calibration.of || 'predicted probability', 40), yLabel: 'observed share', lines: [{ name: 'observed', x: of('predicted'), y: of('observed') }] });
  const table = tableBelow(() => tableOf(['predicted', 'observed', 'samples'].map((name) => ({ name, number: true })),
    seen.map((i) => [calibration.predicted[i], calibration.observed[i], calibration.count[i]]), { label: 'Calibration' }));
  const total = calibration.count.reduce((a, b) => a + b, 0);
  return card('Calibration' + ofPart(calibration.part), el('span', { class: 'note' }, grouped(total) + ' samples' + (calibration.low && calibration.low.length ? ', 95\u2009% intervals' : '')), chart.box, table);
}

function scatterCard(scatter) {
  const ends = widened(rangeOf([...scatter.true, ...scatter.predicted]), 0.04);
  const chart = lineChart({ title: 'Predicted against true', square: true, x: ends, y: ends, diagonal: true, dots: true, noLegend: true, noTable: true,
    xLabel: 'true' + (scatter.target ? ' ' + scatter.target : ''), yLabel: 'predicted' + (scatter.target ? ' ' + scatter.target : ''), lines: [{ name: 'samples', x: scatter.true, y: scatter.predicted }] });
  const table = tableBelow(() => tableOf([{ name: 'true', number: true }, { name: 'predicted', number: true }],
    scatter.true.map((v, i) => [v, scatter.predicted[i]]), { sortable: true, label: 'Predicted and true' }));
  return card('Predicted against true' + ofPart(scatter.part), el('span', { class: 'note' }, grouped(scatter.true.length) + ' samples'), chart.box, table);
}

function forecastChart(forecast) {
  const few = forecast.history.length + forecast.times.length <= 120, interval = forecast.low && forecast.high;
  return lineChart({ title: 'Forecast of ' + forecast.channel, height: 260, knots: few, time: true, xLabel: timeLabel(forecast), yLabel: forecast.channel,
    band: interval ? { x: forecast.times, low: forecast.low, high: forecast.high, colour: 'var(--c2)' } : null,
    lines: [{ name: 'history', x: forecast.history_times, y: forecast.history, colour: 'var(--c8)' },
      { name: 'truth', x: forecast.times, y: forecast.truth, colour: 'var(--c3)' },
      { name: 'prediction', x: forecast.times, y: forecast.predicted, colour: 'var(--c2)' }] });
}

function forecastsCard(forecasts) {
  const place = el('div'), names = forecasts.map((forecast) => `${shortened(forecast.id, 24)}: ${shortened(forecast.channel, 24)}`);
  const show = (i) => {
    const chart = forecastChart(forecasts[i]);
    place.replaceChildren(chart.box);
    if (place.isConnected) chart.draw();
  };
  show(0);
  return card('Predictions over time', el('label', { class: 'note no-print' }, 'Series ', choice(names, show)), place,
    forecasts[0].low ? el('p', { class: 'note' }, 'The area is the interval of the prediction.') : null);
}

function mistakesCard(mistakes) {
  const known = [['id', 'sample'], ['true', 'true'], ['predicted', 'predicted'], ['probability', 'probability'], ['loss', 'loss']]
    .filter(([key]) => mistakes.some((row) => row[key] !== undefined && row[key] !== null));
  const columns = known.map(([key, name]) => ({ name, long: 36, format: key === 'probability' ? 'percent' : null,
    number: mistakes.every((row) => typeof (row[key] ?? 0) === 'number') }));
  const cell = (row, key) => {
    if (key !== 'id' || !openSeries.has(row.id)) return row[key] ?? null;
    return { sort: row.id, make: () => el('button', { type: 'button', class: 'link', onclick: () => openSeries.get(row.id)() }, named(row.id, 36)) };
  };
  const note = openSeries.size ? el('span', { class: 'note no-print' }, 'choose a sample to open it above') : null;
  return card('Largest losses first', note, tableOf(columns, mistakes.map((row) => known.map(([key]) => cell(row, key))),
    { sortable: true, most: 20, label: 'Mistakes' }));
}

function copyButton(text) {
  const button = el('button', { type: 'button', class: 'no-print', onclick: () => {
    if (!navigator.clipboard) return;
    navigator.clipboard.writeText(text).then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Not allowed'; });
  } }, 'Copy');
  return button;
}

function modelCards(model) {
  const total = (model.parameters || []).reduce((sum, row) => sum + row[2], 0), found = [];
  if (model.summary) found.push(card('Summary', model.parameters ? el('span', { class: 'note' }, formatted(total, 'integer') + ' parameters') : null, facts(model.summary)));
  if (model.changed && model.changed.length) {
    found.push(card('Settings that differ from the defaults', null, tableOf([{ name: 'setting', long: 50 }, { name: 'value', long: 30 }, { name: 'default', long: 30 }],
      model.changed.map((row) => [row.key, row.value, row.default]), { label: 'Settings' })));
  }
  if (model.parameters) {
    const columns = [{ name: 'parameter', long: 60 }, { name: 'shape' }, { name: 'numbers', number: true, format: 'integer' }];
    const box = el('article', { class: 'card long' }, el('details', { 'data-print': 'open', class: 'block', style: 'margin:0' },
      el('summary', {}, `Parameters: ${formatted(total, 'integer')} in ${model.parameters.length} tensors`),
      tableOf(columns, model.parameters, { sortable: true, label: 'Parameters' })));
    found.push(box);
  }
  if (model.config) {
    found.push(el('article', { class: 'card long' }, el('details', { 'data-print': 'open', class: 'block', style: 'margin:0' },
      el('summary', {}, 'Configuration'), el('pre', { tabindex: '0' }, model.config), copyButton(model.config))));
  }
  return found;
}

function head() {
  document.getElementById('head').append(el('p', { class: 'eyebrow' }, data.runs ? 'Training runs' : 'Training run'), el('h1', {}, data.title),
    data.subtitle ? el('p', { class: 'subtitle' }, data.subtitle) : '', data.finished ? el('p', { class: 'finished' }, 'Finished ' + data.finished) : '');
}

function overview() {
  return el('section', { id: 'overview', 'aria-label': 'Overview', 'data-title': 'Overview' },
    (data.warnings || []).map((text) => el('p', { class: 'warning', role: 'note' }, text)),
    data.headline && data.headline.length ? headline(data.headline) : null,
    (data.references || []).map((text) => el('p', { class: 'note', style: 'margin:0 0 1rem' }, text)),
    data.facts.length ? el('div', { class: 'card' }, facts(data.facts)) : null,
    data.data && data.data.length ? el('article', { class: 'card' }, el('details', { 'data-print': 'open', class: 'block', style: 'margin:0' },
      el('summary', {}, 'The data'), facts(data.data))) : null);
}

function results() {
  const pairs = [];
  if (data.confusion) pairs.push(confusionCard(data.confusion));
  if (data.classes && data.classes.rows.length) pairs.push(classesCard(data.classes));
  if (data.class_roc && data.class_roc.curves.length) pairs.push(classRocCard(data.class_roc));
  if (data.roc) pairs.push(rocCard(data.roc));
  if (data.calibration) pairs.push(calibrationCard(data.calibration));
  if (data.scatter) pairs.push(scatterCard(data.scatter));
  const found = [];
  // a wide table of confusions needs the whole width; two short cards share a line
  const wide = data.confusion && data.confusion.classes.length > 7 ? [pairs.shift()] : [];
  if (data.metrics) {
    // intervals need the whole width
    const narrow = data.metrics.columns.length <= 3 && !data.metrics.rows.some((row) => row.low);
    const together = pairs.length % 2 === 1 && narrow;
    (together ? pairs : found).unshift(metricsCard(data.metrics));
  }
  found.push(...wide);
  if (pairs.length) found.push(el('div', { class: 'grid' }, pairs));
  if (data.forecasts && data.forecasts.length) found.push(forecastsCard(data.forecasts));
  return found;
}

// what opens the series of an id
const openSeries = new Map();

function seriesParts(view) {
  // numbers are never quite equal: only names are right or wrong
  const bothNamed = typeof view.label === 'string' && typeof view.predicted === 'string';
  const right = bothNamed ? view.label === view.predicted : null;
  const about = el('p', { class: 'lead' }, 'What the model writes into its memory while it reads ', el('b', {}, named(view.id, 40)), '. ',
    el('span', { class: 'no-print' }, 'Move the time with the slider, the arrow keys, or in a chart; click a weight to see it over time.'));
  const badges = el('p', { class: 'lead badges' }, view.label !== undefined ? el('span', { class: 'badge' }, 'true: ', named(formatted(view.label), 24)) : null,
    view.predicted !== undefined ? el('span', { class: 'badge' + (right === null ? '' : right ? ' good' : ' wrong') }, 'predicted: ', named(formatted(view.predicted), 24)) : null);
  const shown = fastWeights(view);
  return { parts: [about, badges, shown.box], shown };
}

function weightsSection() {
  const views = [data.fast_weights, ...(data.series || [])], place = el('div');
  let shown = null;
  function open(i) {
    const before = watched.length, made = seriesParts(views[i]);
    if (shown) shown.stop();
    shown = made.shown;
    place.replaceChildren(...made.parts);
    if (place.isConnected) watched.splice(before).forEach((draw) => draw());
  }
  const outcome = (view) => (view.label === undefined || view.predicted === undefined ? ''
    : view.label === view.predicted ? ', right' : `, ${shortened(formatted(view.label), 14)} taken for ${shortened(formatted(view.predicted), 14)}`);
  const select = choice(views.map((view) => shortened(view.id, 30) + (typeof view.label === 'string' ? outcome(view) : '')), open);
  views.forEach((view, i) => openSeries.set(view.id, () => {
    select.value = i;
    open(i);
    document.getElementById('fast-weights').scrollIntoView();
  }));
  open(0);
  const title = views[0].of === 'state' ? 'The state over time' : 'Fast weights W(t)';
  const chooser = views.length > 1 ? el('p', { class: 'no-print' }, el('label', { class: 'note' }, 'Series ', select)) : null;
  return [section('fast-weights', title, null, chooser, place), { stop: () => shown.stop(), paint: () => shown.paint() }];
}

function adviceCard(advice) {
  return el('div', { class: 'card advice' }, advice.map((text, i) => el('p', { class: i ? 'note' : null }, text)));
}

// paper cannot be opened or scrolled, and is white
function preparePrint(shown) {
  let opened = [];
  window.addEventListener('beforeprint', () => {
    printing = true;
    if (shown) { shown.stop(); shown.paint(); }
    opened = [...document.querySelectorAll('details[data-print=open]:not([open])')];
    opened.forEach((box) => { box.open = true; });
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    if (shown) shown.paint();
    opened.forEach((box) => { box.open = false; });
  });
  darkScreen.addEventListener('change', () => shown && shown.paint());
}

function fill() {
  const main = document.getElementById('main');
  let shown = null;
  head();
  main.append(overview());
  if (data.runs) main.append(section('runs', 'Runs', 'Each run has a report of its own.', runsCard(data.runs)));
  if (data.curves && data.curves.length) main.append(section('training', 'Training', null, data.advice && data.advice.length ? adviceCard(data.advice) : null,
    el('div', { class: 'grid' + (data.curves.length % 3 === 0 ? ' three' : '') }, data.curves.map(curveCard))));
  const found = results();
  if (found.length) main.append(section('results', 'Results', null, found));
  if (data.fast_weights) {
    const [box, view] = weightsSection();
    main.append(box);
    shown = view;
  }
  if (data.mistakes && data.mistakes.length) main.append(section('mistakes', 'Mistakes', null, mistakesCard(data.mistakes)));
  if (data.model) main.append(section('model', 'Model', null, modelCards(data.model)));
  if (data.commands && data.commands.length) {
    const text = data.commands.join('\n');
    main.append(section('commands', 'Commands', null, el('div', { class: 'card' }, el('header', {}, el('h3', {}, 'To do it again'), copyButton(text)), el('pre', { tabindex: '0' }, text))));
  }
  document.getElementById('contents').append(el('ul', {}, [...main.children].map((part) =>
    el('li', {}, el('a', { href: '#' + part.id }, part.dataset.title)))));
  document.getElementById('foot').append('Written by fastweights. This file is complete in itself: it loads nothing.');
  watched.forEach((draw) => draw());
  preparePrint(shown);
  document.documentElement.dataset.ready = 'yes';
}

fill();
