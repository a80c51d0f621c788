// what observations contribute to an output: a map of channels over time, their sums, and a chart of the times

const kMapRows = 24;

function importanceTotals(view) {
  const values = view.importance.values;
  return view.channels.map((name, c) => {
    const column = values.map((row) => (isNumber(row[c]) ? row[c] : 0));
    return { c, name, sum: column.reduce((a, b) => a + b, 0), size: column.reduce((a, b) => a + Math.abs(b), 0) };
  }).sort((a, b) => b.size - a.size);
}

// one line of pixels per channel, the time from left to right; an observation lasts to the middle of the next gap
function importanceMap(view, span, shown) {
  const values = view.importance.values, plot = el('div', { class: 'importance' });
  const most = largestOf(shown.flatMap(({ c }) => values.map((row) => (isNumber(row[c]) ? row[c] : 0))));
  const canvases = shown.map(({ c, name }) => {
    const canvas = el('canvas', { width: 600, height: 1, role: 'img', 'aria-label': 'Contributions of ' + name + ' over time' });
    canvas.addEventListener('pointermove', (event) => {
      const frame = canvas.getBoundingClientRect();
      const i = nearest(view.times, span[0] + ((event.clientX - frame.left) / frame.width) * (span[1] - span[0]));
      const seen = isNumber(view.values[i][c]) ? plain(view.values[i][c]) : 'missing';
      showHint(event, `${shortened(name, 24)}\nt ${timeText(view.times[i])}\nvalue ${seen}\ncontribution ${plain(values[i][c], 3)}`);
    });
    canvas.addEventListener('pointerleave', hideHint);
    plot.append(el('span', { class: 'note' }, named(name, 16)), canvas);
    return canvas;
  });
  const axis = el('div', { class: 'ends' }, el('span', {}, timeText(span[0])), el('span', {}, timeLabel(view)), el('span', {}, timeText(span[1])));
  plot.append(el('span'), axis);

  function paint() {
    const colours = divergingTable();
    canvases.forEach((canvas, row) => {
      const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, 1);
      for (let px = 0; px < canvas.width; ++px) {
        const i = nearest(view.times, span[0] + ((px + 0.5) / canvas.width) * (span[1] - span[0]));
        const v = values[i][shown[row].c], level = levelOf(isNumber(v) ? v : 0, most);
        image.data.set([colours[3 * level], colours[3 * level + 1], colours[3 * level + 2], 255], 4 * px);
      }
      context.putImageData(image, 0, 0);
    });
  }
  paint();
  return { box: plot, paint };
}

function importanceCards(view, span, pick) {
  const { of, output, baseline, values } = view.importance;
  const totals = importanceTotals(view), shown = totals.slice(0, kMapRows), map = importanceMap(view, span, shown);
  const about = el('p', { class: 'note' }, `The ${of} is ${plain(output, 3)}; of the same times with every observation at its mean it is ` +
    `${plain(baseline, 3)}. The contributions sum to the difference. Orange raises the output, blue lowers it.`,
    totals.length > shown.length ? ` The ${shown.length} of ${totals.length} channels with the largest contributions.` : '');
  const largest = Math.max(...totals.map((row) => row.size), 1e-300);
  const bar = (size) => ({ text: '', sort: size, make: () => el('span', { class: 'bar', style: `width:${(0.2 + (size / largest) * 4).toFixed(2)}rem`, 'aria-hidden': 'true' }) });
  const table = tableOf([{ name: 'channel', long: 24 }, { name: 'sum', number: true }, { name: 'sum of sizes', number: true }, { name: '' }],
    totals.map(({ name, sum, size }) => [name, sum, size, bar(size)]), { most: 8, label: 'Contributions of channels' });
  const times = lineChart({ title: 'Contributions of times', x: span, height: 150, time: true, xLabel: timeLabel(view), yLabel: 'contribution', noLegend: true, onPick: pick, knots: view.times.length <= 60,
    lines: [{ name: 'all channels', x: view.times, y: values.map((row) => row.reduce((a, b) => a + (isNumber(b) ? b : 0), 0)) }] });
  const boxes = [card('Importance of channels and times', el('span', { class: 'note' }, named('for the ' + of, 40)), map.box, about),
    card('Contributions of times', null, times.box), card('Contributions of channels', null, table)];
  return { boxes, paint: map.paint, setCursor: times.setCursor };
}
