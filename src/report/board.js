// all runs of a folder, by task and data: a table, curves over each other, settings that differ

let board = JSON.parse(document.getElementById('data').textContent);
const kPause = 2000;
const orders = new Map();

const file = (path) => path.split('/').filter(Boolean).pop() || path;

// runs that can be compared: of one task on the same data
function groupsOf(runs) {
  const groups = new Map();
  for (const run of runs) {
    const key = JSON.stringify([run.task, run.data]);
    if (!groups.has(key)) groups.set(key, { key, name: run.task ? run.task + ' of ' + file(run.data) : 'unreadable', runs: [] });
    groups.get(key).runs.push(run);
  }
  return [...groups.values()].map((group) => ({ ...group, runs: ranked(group.runs) })).sort((a, b) => a.name.localeCompare(b.name));
}

// the best of each metric first: those keep colours and thick lines
function ranked(runs) {
  const worth = (run) => (isNumber(run.validation) ? (run.larger_is_better ? run.validation : -run.validation) : -Infinity);
  return [...runs].sort((a, b) => a.metric.localeCompare(b.metric) || worth(b) - worth(a));
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

function runsTable({ key, runs }) {
  const metrics = new Set(runs.map((run) => run.metric).filter(Boolean)), one = metrics.size === 1 ? [...metrics][0] : null;
  const value = (run, v) => ({ sort: isNumber(v) ? v : null, make: () => el('span', {}, formatted(v, shareMetrics.includes(run.metric) ? 'percent' : null)) });
  const columns = [{ name: 'run', long: 44 }, { name: 'state' }].concat(one ? [] : [{ name: 'metric' }],
    [{ name: one ? 'validation ' + one : 'validation', number: true }, { name: one ? 'test ' + one : 'test', number: true },
      { name: 'best epoch', number: true, format: 'integer' }, { name: 'epochs', number: true, format: 'integer' },
      { name: 'time', number: true, format: 'seconds' }, { name: 'model', long: 40 }, { name: 'data', long: 24 }]);
  const rows = runs.map((run) => [runCell(run), stateBadge(run), ...(one ? [] : [run.metric]), value(run, run.validation), value(run, run.test),
    run.best_epoch || null, run.epochs || null, run.seconds || null, run.model, file(run.data)]);
  return tableOf(columns, rows, { sortable: true, label: 'Runs', order: orders.get(key), onSort: (now) => { orders.set(key, now); } });
}

// keys with several values in these runs, or null
function settingsTable({ runs }) {
  const known = runs.filter((run) => run.settings.length).map((run) => ({ name: run.name, own: new Map(run.settings) }));
  const keys = board.keys.filter((key) => new Set(known.map((run) => run.own.get(key))).size > 1);
  if (!keys.length) return null;
  const columns = [{ name: 'run', long: 44 }].concat(keys.map((key) => ({ name: key })));
  const rows = known.map((run) => [run.name, ...keys.map((key) => run.own.get(key) ?? '\u2013')]);
  return tableOf(columns, rows, { sortable: true, label: 'Settings that differ' });
}

function curveCards({ runs }) {
  const rank = new Map(runs.map((run, i) => [run.name, i])), most = 8;
  return board.curves.map((curve) => ({ ...curve, lines: curve.lines.filter((line) => rank.has(line.name)) })).filter((curve) => curve.lines.length).map((curve) => {
    const lines = curve.lines.sort((a, b) => rank.get(a.name) - rank.get(b.name))
      .map((line) => ({ ...line, colour: rank.get(line.name) < most ? colour(rank.get(line.name)) : null }));
    const chart = lineChart({ title: curve.title, xLabel: curve.x_label, yLabel: curve.y_label, lines, most, first: 'with the best validation',
      knots: lines.every((line) => line.x.length < 3) });
    return card(curve.title, null, chart.box);
  });
}

// the sections of a group, which need its name unless it is the only one
function groupSections(group, i, only) {
  const parts = [], title = (text) => (only ? text : text + ': ' + group.name), id = (text) => (only ? text : text + '-' + i);
  const curves = curveCards(group), settings = settingsTable(group);
  parts.push(section(id('runs'), title('Runs'), i === 0 ? 'Sorted by the metric on the validation part. Compare on it, and look at the test part last.' : null, el('div', { class: 'card' }, runsTable(group))));
  if (curves.length) parts.push(section(id('curves'), title('Curves'), null, el('div', { class: 'grid' + (curves.length % 3 === 0 ? ' three' : '') }, curves)));
  if (settings) parts.push(section(id('settings'), title('Settings that differ'), null, el('div', { class: 'card' }, settings)));
  return parts;
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
  groupsOf(board.runs).forEach((group, i, all) => parts.push(...groupSections(group, i, all.length === 1)));
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
