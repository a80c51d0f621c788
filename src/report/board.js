// all runs of a folder: a table, curves over each other, settings that differ

let board = JSON.parse(document.getElementById('data').textContent);
const kPause = 2000;
let order = null;

// the best first: those keep colours and thick lines
function ranked(runs) {
  const worth = (run) => (isNumber(run.validation) ? (run.larger_is_better ? run.validation : -run.validation) : -Infinity);
  return [...runs].sort((a, b) => worth(b) - worth(a));
}

function stateBadge(run) {
  const kind = { running: 'busy', finished: 'good', failed: 'wrong', unreadable: 'wrong' }[run.state] || '';
  return { sort: run.state, make: () => el('span', { class: 'badge ' + kind, title: run.note || null }, run.state) };
}

function runCell(run) {
  if (!run.link) return run.name;
  const target = run.link.split('/').map(encodeURIComponent).join('/');
  return { sort: run.name, make: () => el('a', { href: target }, named(run.name, 44)) };
}

const shareMetrics = ['accuracy', 'balanced_accuracy'];

function runsTable() {
  const metrics = new Set(board.runs.map((run) => run.metric).filter(Boolean)), one = metrics.size === 1 ? [...metrics][0] : null;
  const value = (run, v) => ({ sort: isNumber(v) ? v : null, make: () => el('span', {}, formatted(v, shareMetrics.includes(run.metric) ? 'percent' : null)) });
  const columns = [{ name: 'run', long: 44 }, { name: 'state' }].concat(one ? [] : [{ name: 'metric' }],
    [{ name: one ? 'validation ' + one : 'validation', number: true }, { name: one ? 'test ' + one : 'test', number: true },
      { name: 'best epoch', number: true, format: 'integer' }, { name: 'epochs', number: true, format: 'integer' },
      { name: 'time', number: true, format: 'seconds' }, { name: 'model', long: 40 }, { name: 'data', long: 24 }]);
  const file = (path) => path.split('/').filter(Boolean).pop() || path;
  const rows = ranked(board.runs).map((run) => [runCell(run), stateBadge(run), ...(one ? [] : [run.metric]), value(run, run.validation), value(run, run.test),
    run.best_epoch || null, run.epochs || null, run.seconds || null, run.model, file(run.data)]);
  return tableOf(columns, rows, { sortable: true, label: 'Runs', order, onSort: (now) => { order = now; } });
}

function settingsTable() {
  const columns = [{ name: 'run', long: 44 }].concat(board.keys.map((key) => ({ name: key })));
  const rows = ranked(board.runs).filter((run) => run.settings.length).map((run) => {
    const own = new Map(run.settings);
    return [run.name, ...board.keys.map((key) => own.get(key) ?? '\u2013')];
  });
  return tableOf(columns, rows, { sortable: true, label: 'Settings that differ' });
}

function curveCards() {
  const rank = new Map(ranked(board.runs).map((run, i) => [run.name, i])), most = 8;
  return board.curves.map((curve) => {
    const lines = [...curve.lines].sort((a, b) => rank.get(a.name) - rank.get(b.name))
      .map((line) => ({ ...line, colour: rank.get(line.name) < most ? colour(rank.get(line.name)) : null }));
    const chart = lineChart({ title: curve.title, xLabel: curve.x_label, yLabel: curve.y_label, lines, most, first: 'with the best validation',
      knots: lines.every((line) => line.x.length < 3) });
    return card(curve.title, null, chart.box);
  });
}

function counts() {
  const found = new Map();
  for (const run of board.runs) found.set(run.state, (found.get(run.state) || 0) + 1);
  return [...found].map(([state, n]) => `${n} ${state}`).join(', ');
}

function draw() {
  const before = watched.length, parts = [];
  const summary = board.runs.length ? `${board.runs.length} ${board.runs.length === 1 ? 'run' : 'runs'}: ${counts()}` : 'There are no runs in this folder yet.';
  document.getElementById('head').replaceChildren(el('p', { class: 'eyebrow' }, 'Training runs'), el('h1', {}, board.title),
    el('p', { class: 'subtitle' }, summary), el('p', { class: 'finished', id: 'written' }, 'As of ' + board.written));
  for (const note of board.notes.concat(board.runs.filter((run) => run.note).map((run) => run.name + ': ' + run.note))) {
    parts.push(el('p', { class: 'warning', role: 'note' }, note));
  }
  if (board.runs.length) parts.push(section('runs', 'Runs', 'Sorted by the metric on the validation part. Compare on it, and look at the test part last.', el('div', { class: 'card' }, runsTable())));
  if (board.curves.length) parts.push(section('curves', 'Curves', null, el('div', { class: 'grid' + (board.curves.length % 3 === 0 ? ' three' : '') }, curveCards())));
  if (board.keys.length) parts.push(section('settings', 'Settings that differ', null, el('div', { class: 'card' }, settingsTable())));
  document.getElementById('main').replaceChildren(...parts);
  document.getElementById('contents').replaceChildren(el('ul', {}, parts.filter((part) => part.id).map((part) =>
    el('li', {}, el('a', { href: '#' + part.id }, part.dataset.title)))));
  watched.splice(before).forEach((redraw) => redraw());
}

// what has changed is drawn; nothing else moves under the reader's hands
async function refresh() {
  let text = null;
  try {
    const answer = await fetch('board.json', { cache: 'no-store' });
    if (answer.ok) text = await answer.text();
  } catch (gone) {
    text = null;
  }
  const written = document.getElementById('written');
  if (text === null) {
    written.textContent = 'As of ' + board.written + '. The board is no longer served.';
  } else {
    const next = JSON.parse(text), same = JSON.stringify({ ...next, written: '' }) === JSON.stringify({ ...board, written: '' });
    board = next;
    if (same) written.textContent = 'As of ' + board.written;
    else draw();
  }
  window.setTimeout(refresh, kPause);
}

function begin() {
  draw();
  document.getElementById('foot').append('Written by fastweights.', board.live ? ' This page refreshes itself.' : ' This file is complete in itself: it loads nothing.');
  window.addEventListener('beforeprint', () => { printing = true; });
  window.addEventListener('afterprint', () => { printing = false; });
  if (board.live) window.setTimeout(refresh, kPause);
  document.documentElement.dataset.ready = 'yes';
}

begin();
