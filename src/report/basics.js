// elements, numbers and colours

function append(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  // text enters as text nodes only: nothing in the data can become an element
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

function el(tag, attributes, ...children) {
  return append(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return append(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

const isNumber = (v) => typeof v === 'number' && Number.isFinite(v);

function grouped(v) {
  return String(v).replace(/\B(?=(\d{3})+(?!\d))/g, '\u2009');
}

// four significant digits, without a tail of zeros; powers of ten where they are shorter
function plain(v, digits = 4) {
  if (!isNumber(v)) return '\u2013';
  if (v === 0) return '0';
  const size = Math.abs(v);
  if (size >= 1e6 || size < 1e-3) {
    const [mantissa, exponent] = v.toExponential(digits - 2).split('e');
    return mantissa.replace(/\.?0+$/, '').replace('-', '\u2212') + 'e' + Number(exponent);
  }
  let text = v.toPrecision(digits);
  if (text.includes('e')) text = String(Number(text));
  if (text.includes('.')) text = text.replace(/\.?0+$/, '');
  const [whole, part] = text.split('.');
  const left = whole.replace('-', '').length > 4 ? grouped(whole) : whole;
  return (part === undefined ? left : left + '.' + part).replace('-', '\u2212');
}

// how times are dates: {zero, unit, step} in milliseconds, the last one what is shown; null where times are numbers
let calendar = null;
const dateOf = (t) => calendar.zero + t * calendar.unit;
const timeOfDate = (at) => (at - calendar.zero) / calendar.unit;

// where observations are at whole seconds, times between them have no fractions either
function setCalendar(given, times) {
  calendar = { ...given, step: 1 };
  if (times.every((t) => Math.abs(dateOf(t) - 1000 * Math.round(dateOf(t) / 1000)) < 0.5)) calendar.step = 1000;
}

// "2024-03-01 12:30", with seconds and fractions where there are any
function dateText(at) {
  const date = new Date(calendar.step * Math.round(at / calendar.step));
  if (Number.isNaN(date.getTime())) return plain(at);
  const [day, clock] = date.toISOString().slice(0, -1).split('T');
  return day + ' ' + clock.replace(/\.000$/, '').replace(/^(\d\d:\d\d):00$/, '$1');
}

const timeText = (t) => (calendar && isNumber(t) ? dateText(dateOf(t)) : plain(t));
const timeCell = (t) => (calendar ? { sort: t, make: () => el('span', {}, timeText(t)) } : t);

function seconds(v) {
  if (v < 60) return plain(v, 3) + ' s';
  const whole = Math.round(v), h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60, s = whole % 60;
  return h > 0 ? h + ' h ' + m + ' min' : m + ' min ' + s + ' s';
}

function bytes(v) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (v >= 1024 && unit < units.length - 1) { v /= 1024; unit += 1; }
  return plain(v, 3) + ' ' + units[unit];
}

function formatted(v, format) {
  if (typeof v === 'string') return v;
  if (!isNumber(v)) return '\u2013';
  if (format === 'percent') return (100 * v).toFixed(Math.abs(v) < 0.1 ? 2 : 1) + '\u2009%';
  if (format === 'integer') return grouped(Math.round(v)).replace('-', '\u2212');
  if (format === 'seconds') return seconds(v);
  if (format === 'bytes') return bytes(v);
  return plain(v);
}

// the middle of a long name is its least telling part
function shortened(text, longest = 28) {
  const letters = Array.from(String(text));
  if (letters.length <= longest) return String(text);
  const head = Math.ceil((longest - 1) * 0.6), tail = longest - 1 - head;
  return letters.slice(0, head).join('') + '\u2026' + letters.slice(-tail).join('');
}

function named(text, longest) {
  const short = shortened(text, longest);
  return short === String(text) ? short : el('span', { title: text }, short);
}

const colour = (i) => 'var(--c' + (i % 8 + 1) + ')';
const dashes = (i) => (i < 8 ? null : i < 16 ? '6 3' : '2 3');

const darkScreen = window.matchMedia('screen and (prefers-color-scheme: dark)');
let printing = false;
const dark = () => darkScreen.matches && !printing;

// blue for negative, orange for positive, the ground for zero: told apart with any kind of colour vision, and as grey
// levels stronger values differ more from the ground
const kDiverging = {
  light: ['#0b3c73', '#2f78c0', '#a8cbe8', '#f7f7f5', '#f3c296', '#d06c14', '#7a3200'],
  dark: ['#cfe6ff', '#5aa9f5', '#22507f', '#12161e', '#7c4317', '#f09344', '#ffe3c4'],
};
const kLevels = 511;
const tables = {};

function divergingTable() {
  const theme = dark() ? 'dark' : 'light';
  if (tables[theme]) return tables[theme];
  const stops = kDiverging[theme].map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
  const table = new Uint8ClampedArray(3 * kLevels);
  for (let i = 0; i < kLevels; ++i) {
    const at = (i / (kLevels - 1)) * (stops.length - 1), left = Math.min(Math.floor(at), stops.length - 2);
    for (let c = 0; c < 3; ++c) {
      table[3 * i + c] = stops[left][c] + (at - left) * (stops[left + 1][c] - stops[left][c]);
    }
  }
  return (tables[theme] = table);
}

function levelOf(v, largest) {
  const middle = (kLevels - 1) / 2;
  if (!(largest > 0)) return middle;
  return Math.round(middle * (1 + Math.max(-1, Math.min(1, v / largest))));
}

// the one small window that follows the pointer
function showHint(event, text) {
  const hint = document.getElementById('hint');
  hint.textContent = text;
  hint.hidden = false;
  const box = hint.getBoundingClientRect(), gap = 14;
  const right = event.clientX + gap + box.width < window.innerWidth;
  const below = event.clientY + gap + box.height < window.innerHeight;
  hint.style.left = Math.max(4, right ? event.clientX + gap : event.clientX - gap - box.width) + 'px';
  hint.style.top = Math.max(4, below ? event.clientY + gap : event.clientY - gap - box.height) + 'px';
}

function hideHint() {
  document.getElementById('hint').hidden = true;
}

// columns: {name, format, number, long}; rows: lists of values, or of {sort, make} for other elements
function tableOf(columns, rows, options = {}) {
  const body = el('tbody');
  const shown = () => (options.most && !options.all ? rows.slice(0, options.most) : rows);
  function fill() {
    body.replaceChildren(...shown().map((row) => el('tr', {}, row.map((value, i) => {
      const content = value instanceof Node ? value : value && value.make ? value.make() : typeof value === 'string' ? named(value, columns[i].long || 44) : formatted(value, columns[i].format);
      return el(i === 0 && !columns[i].number ? 'th' : 'td',
        { scope: i === 0 && !columns[i].number ? 'row' : null, class: columns[i].number ? 'number' : typeof value === 'string' && value.length <= 16 ? 'short' : null }, content);
    }))));
  }
  const heads = columns.map((column, i) => {
    const name = named(column.name, 30);
    const head = el('th', { scope: 'col', class: column.number ? 'number' : null }, options.sortable ? '' : name);
    if (options.sortable) {
      head.append(el('button', { type: 'button', onclick: () => sortBy(i) }, name));
    }
    return head;
  });
  function sortBy(i, direction) {
    const down = direction ? direction === 'descending' : heads[i].getAttribute('aria-sort') !== 'descending';
    if (options.onSort) options.onSort({ column: i, direction: down ? 'descending' : 'ascending' });
    heads.forEach((head) => head.removeAttribute('aria-sort'));
    heads[i].setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const key = (value) => (value && value.make ? value.sort : value);
    const order = (a, b) => (typeof a === 'string' || typeof b === 'string'
      ? String(a).localeCompare(String(b), undefined, { numeric: true })
      : (isNumber(a) ? a : -Infinity) - (isNumber(b) ? b : -Infinity));
    rows = [...rows].sort((a, b) => (down ? order(key(b[i]), key(a[i])) : order(key(a[i]), key(b[i]))));
    fill();
  }
  if (options.order) sortBy(options.order.column, options.order.direction);
  fill();
  const box = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': options.label || 'table' },
    el('table', {}, options.caption ? el('caption', {}, options.caption) : null,
      el('thead', {}, el('tr', {}, heads)), body));
  if (!options.most || rows.length <= options.most) return box;
  const more = el('button', { type: 'button', class: 'no-print', onclick: () => {
    options.all = true;
    fill();
    more.remove();
  } }, 'Show all ' + rows.length);
  return el('div', {}, box, more);
}

// the numbers of a figure, made when someone asks for them
function tableBelow(make) {
  const box = el('details', { class: 'table-of' }, el('summary', {}, 'Show as a table'));
  box.addEventListener('toggle', () => {
    if (box.open) box.replaceChildren(box.firstChild, make());
  });
  return box;
}

function section(id, title, lead, ...content) {
  return el('section', { id, 'aria-labelledby': id + '-title', 'data-title': title },
    el('h2', { id: id + '-title' }, title), lead ? el('p', { class: 'lead' }, lead) : null, content);
}
