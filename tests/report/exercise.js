// uses every control of a page once; whatever goes wrong ends in data-error

function expectThat(fact, what) {
  if (!fact) console.error('not so: ' + what);
}

function useEverything() {
  const all = (selector) => [...document.querySelectorAll(selector)];
  expectThat(all('img, iframe, object, embed').length === 0, 'nothing in the data becomes an element');
  expectThat(document.title !== 'taken', 'no text of the data runs');
  expectThat(all('svg, canvas, input, select').every((e) => e.ariaHidden || e.ariaLabel || e.closest('label')),
    'every figure and control has a name');
  for (const details of all('details')) {
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
  }
  expectThat(all('.table-of').every((box) => box.querySelector('td, th')), 'every figure has a table');
  for (const select of all('select')) {
    for (const option of [...select.options].reverse()) {
      select.value = option.value;
      select.dispatchEvent(new Event('change'));
    }
  }
  for (const figure of all('svg, canvas')) {
    const box = figure.getBoundingClientRect();
    for (const [name, buttons] of [['pointermove', 0], ['pointerdown', 1], ['pointermove', 1], ['click', 0], ['pointerleave', 0]]) {
      figure.dispatchEvent(new PointerEvent(name, { bubbles: true, buttons, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
    }
  }
  for (const button of all('button')) if (button.textContent !== 'Copy') button.click();
  useTime();
  for (const event of ['beforeprint', 'afterprint']) window.dispatchEvent(new Event(event));
  document.documentElement.dataset.used = 'yes';
}

// slider, keys, play and pause
function useTime() {
  const slider = document.querySelector('.control input');
  if (!slider) return;
  const clock = document.querySelector('.control output'), play = document.querySelector('.play');
  const picture = () => document.querySelector('.heads canvas').toDataURL();
  const move = (i) => { slider.value = i; slider.dispatchEvent(new Event('input')); };
  move(slider.max);
  const last = [clock.textContent, picture()];
  move(1);
  expectThat(clock.textContent !== last[0], 'the clock follows the slider');
  expectThat(picture() !== last[1], 'W follows the slider');
  expectThat(slider.getAttribute('aria-valuetext').includes('2 of'), 'the slider says where it is');
  play.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, cancelable: true }));
  expectThat(slider.value === '2', 'the arrow keys move the time');
  expectThat(play.textContent.includes('Play'), 'stands still');
  play.click();
  expectThat(play.textContent.includes('Pause'), 'plays');
  play.click();
  expectThat(play.textContent.includes('Play'), 'stands still again');
}

useEverything();
