// SPDX-License-Identifier: GPL-2.0-only
// Builds the page from its data: verdict, key figures, and a section for each chart.
'use strict';

(() => {
  const report = JSON.parse(document.getElementById('data').textContent);
  const root = document.documentElement;
  const kinds = [...new Set(report.charts.flatMap((chart) =>
    Object.values(chart.tables).flatMap((table) => table.kind?.texts ?? [])))].sort();
  const sections = [];  // {chart, tables, plot, instance, state, controls}

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // Columns of texts are stored as each text once, and which.
  const decoded = (tables) => {
    const out = {};
    for (const [name, table] of Object.entries(tables)) {
      out[name] = {};
      for (const [column, stored] of Object.entries(table)) {
        out[name][column] = Array.isArray(stored) ? stored : stored.at.map((i) => stored.texts[i]);
      }
    }
    return out;
  };

  // ---- Theme

  const stored = () => {
    try {
      return localStorage.getItem('railyard-theme');
    } catch {
      return null;  // pages opened from disk may have no storage
    }
  };
  const prefersDark = matchMedia('(prefers-color-scheme: dark)');
  const themeButton = document.getElementById('theme');

  const setTheme = (theme) => {
    root.dataset.theme = theme;
    themeButton.textContent = theme === 'dark' ? 'Light' : 'Dark';
    themeButton.setAttribute('aria-label', `Switch to ${theme === 'dark' ? 'light' : 'dark'} colours`);
  };

  const look = () => {
    const style = getComputedStyle(root);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    const isDark = root.dataset.theme === 'dark';
    return {
      ground: color('ground'), raised: color('raised'), line: color('line'), ink: color('ink'),
      soft: color('soft'), faint: color('faint'), mark: color('mark'), fault: color('fault'),
      font: getComputedStyle(document.body).fontFamily,
      isDark,
      isNarrow: innerWidth < 640,
      // Okabe and Ito's colours, which colour-blind readers distinguish; lightened for a dark ground.
      palette: isDark
        ? ['#56b4e9', '#e69f00', '#2fbf94', '#e39ac5', '#f0e442', '#9db4ff', '#c9ced3', '#e8743b']
        : ['#0072b2', '#d55e00', '#009e73', '#b4558c', '#b98900', '#3f8fc4', '#5b646c', '#7a5195'],
      // One direction of lightness, away from the ground, which can be distinguished in grey, too.
      ramp: isDark
        ? ['#1c3350', '#24598a', '#2b83a6', '#43b0a0', '#9fd66b', '#fbe94e']
        : ['#cfe5f0', '#a0d0dd', '#5eb1c9', '#2a82b0', '#1d5391', '#10245c'],
      run: report.run,
      has: (id) => report.charts.some((chart) => chart.id === id),
      collectives: report.figures.find((entry) => entry.label === 'Collectives')?.figure.value,
      kinds,
      faults: report.faults ? decoded({faults: report.faults}).faults : {},
      block: 1,
    };
  };

  // ---- Verdict and figures

  const queryLine = document.getElementById('query');
  const figure = (phrase) => {
    const made = element('span', {class: 'figure', tabindex: '0', title: phrase.sql}, phrase.text);
    made.dataset.sql = phrase.sql;
    made.dataset.value = String(phrase.value);
    const show = () => {
      queryLine.textContent = `sqlite3 results.sqlite "${phrase.sql}"`;
      queryLine.hidden = false;
    };
    made.addEventListener('focus', show);
    made.addEventListener('click', show);
    return made;
  };

  const writeHead = () => {
    document.title = report.title;
    document.getElementById('scenario').textContent = report.subject;
    // The first sentence is the heading.
    const end = 1 + report.verdict.findIndex((phrase) => !phrase.sql && phrase.text.endsWith('.'));
    const said = (phrases) => phrases.map((phrase) => (phrase.sql ? figure(phrase) : phrase.text));
    document.getElementById('hint').hidden = !report.verdict.some((phrase) => phrase.sql);
    document.querySelector('#verdict h1').append(...said(report.verdict.slice(0, end)));
    document.querySelector('#verdict .lede').append(...said(report.verdict.slice(end)));
    document.getElementById('figures').append(
      ...report.figures.map((entry) =>
        element('div', {}, element('dt', {}, entry.label), element('dd', {}, ...said([entry.figure])))));
    document.getElementById('provenance').textContent = report.provenance;
    if (report.notes.length > 0) {
      const notes = document.getElementById('notes');
      notes.hidden = false;
      notes.querySelector('ul').append(...report.notes.map((note) => element('li', {}, note)));
    }
  };

  // ---- Data of a chart, as a table and as a file

  const rowsShownMax = 200;

  const csvOf = (table) => {
    const quoted = (value) => {
      if (value === null || value === undefined) return '';
      const text = String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const columns = Object.keys(table);
    const lines = [columns.join(',')];
    for (let i = 0; i < table[columns[0]].length; i += 1) {
      lines.push(columns.map((column) => quoted(table[column][i])).join(','));
    }
    return `${lines.join('\n')}\n`;
  };

  const save = (name, type, content) => {
    const link = element('a', {download: name});
    link.href = URL.createObjectURL(new Blob([content], {type}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const tableOf = (table) => {
    const columns = Object.keys(table);
    const count = table[columns[0]].length;
    const kind = (column) => (typeof table[column][0] === 'string' ? 'text' : 'number');
    const head = element('tr', {}, ...columns.map((column) => element('th', {class: kind(column), scope: 'col'}, column)));
    const body = element('tbody');
    for (let i = 0; i < Math.min(count, rowsShownMax); i += 1) {
      body.append(element('tr', {}, ...columns.map((column) =>
        element('td', {class: kind(column)}, format.cell(column, table[column][i])))));
    }
    const made = element('div', {class: 'scroll', tabindex: '0'},
      element('table', {}, element('thead', {}, head), body));
    return count > rowsShownMax
      ? [made, element('p', {class: 'caption'}, `The first ${rowsShownMax} of ${format.count(count)} rows.`)]
      : [made];
  };

  const toolsOf = (section) => {
    const data = element('details', {}, element('summary', {}, 'Data'));
    data.addEventListener('toggle', () => {
      if (data.open && data.childElementCount === 1) {
        for (const table of Object.values(section.tables)) data.append(...tableOf(table));
      }
    });
    const csv = element('button', {type: 'button'}, 'CSV');
    csv.addEventListener('click', () => {
      for (const [name, table] of Object.entries(section.tables)) save(`${name}.csv`, 'text/csv', csvOf(table));
    });
    const svg = element('button', {type: 'button'}, 'SVG');
    svg.addEventListener('click', () => {
      if (!section.instance) return;
      const holder = element('div', {style: `width:${section.plot.clientWidth}px;height:${section.plot.clientHeight}px`});
      const copy = echarts.init(holder, null, {
        renderer: 'svg', width: section.plot.clientWidth, height: section.plot.clientHeight});
      copy.setOption(section.instance.getOption());
      save(`${section.chart.id}.svg`, 'image/svg+xml', copy.renderToSVGString());
      copy.dispose();
    });
    return element('div', {class: 'tools'}, csv, svg, data);
  };

  // ---- Charts

  const addSection = (chart) => {
    const draw = drawings[chart.id];
    const section = {chart, draw, tables: decoded(chart.tables), state: {}, instance: null};
    const heading = element('h2', {id: `${chart.id}-heading`}, chart.title);
    section.controls = element('div', {class: 'controls'});
    section.plot = element('div', {class: 'plot', role: 'img', tabindex: '0',
      'aria-label': `${chart.title}. ${chart.caption} The left and right arrow keys go from point to point.`});
    section.box = element('section', {id: chart.id, 'aria-labelledby': heading.id}, heading,
      element('p', {class: 'caption'}, chart.caption), section.controls, section.plot);
    section.below = element('div');
    section.box.append(section.below);
    if (chart.note) section.box.append(element('p', {class: 'note'}, chart.note));
    section.box.append(toolsOf(section));
    section.plot.addEventListener('keydown', (event) => step(section, event));
    document.getElementById('charts').append(section.box);
    sections.push(section);
  };

  // Arrow keys show the tooltip of the next point.
  const step = (section, event) => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!by || !section.instance) return;
    event.preventDefault();
    const series = section.instance.getOption().series;
    const counts = series.map((one) => (one.data ? one.data.length : 0));
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return;
    section.at = ((section.at ?? (by > 0 ? -1 : 0)) + by + total) % total;
    let dataIndex = section.at;
    let seriesIndex = 0;
    while (dataIndex >= counts[seriesIndex]) dataIndex -= counts[seriesIndex++];
    section.instance.dispatchAction({type: 'showTip', seriesIndex, dataIndex});
  };

  const addControls = (section, controls) => {
    for (const control of controls) {
      const at = section.state[control.name] ?? control.choices?.[0][0] ?? control.min;
      if (control.choices) {
        const select = element('select', {}, ...control.choices.map(([value, text]) => {
          const choice = element('option', {value}, text);
          choice.selected = value === at;
          return choice;
        }));
        select.addEventListener('change', () => {
          section.state[control.name] = select.value;
          drawSection(section);
        });
        section.controls.append(element('label', {}, `${control.label} `, select));
      } else {
        const slider = element('input', {type: 'range', min: control.min, max: control.max, step: 1});
        slider.value = at;
        const shown = element('output', {}, control.text(Number(at)));
        slider.addEventListener('input', () => {
          section.state[control.name] = Number(slider.value);
          shown.textContent = control.text(Number(slider.value));
          drawSection(section);
        });
        section.controls.append(element('label', {}, `${control.label} `, slider, shown));
      }
    }
  };

  // Lists beside a chart: facts about its rows, or a chain.
  const listsOf = (drawn) => {
    const entries = (list) => list.map(([head, text]) => element('li', {}, element('b', {}, head), element('span', {}, text)));
    return [
      ...(drawn.facts ? [element('ul', {class: 'facts'}, ...entries(drawn.facts))] : []),
      ...(drawn.chain ? [element('ol', {class: 'chain'}, ...entries(drawn.chain))] : [])];
  };

  const drawSection = (section) => {
    const drawn = section.draw(section.tables, look(), section.state);
    section.box.className = drawn.width ?? '';
    section.plot.classList.toggle('square', Boolean(drawn.square));
    if (section.controls.childElementCount === 0) addControls(section, drawn.controls ?? []);
    const height = drawn.height === 'square'
      ? Math.min(720, section.plot.clientWidth) + 60 : drawn.height;
    section.plot.style.height = `${height}px`;
    if (!section.instance) {
      // Pictures of lines and few points print sharply; many points need a canvas.
      const points = Object.values(section.tables).reduce(
        (sum, table) => sum + (Object.values(table)[0]?.length ?? 0), 0);
      section.instance = echarts.init(section.plot, null, {renderer: points > 3000 ? 'canvas' : 'svg'});
    } else {
      section.instance.resize();
    }
    section.instance.setOption(drawn.option, {notMerge: true});
    section.below.replaceChildren(...listsOf(drawn));
  };

  const redrawAll = () => {
    for (const section of sections) drawSection(section);
  };

  const writeContents = () => {
    const links = report.charts.map((chart) =>
      element('li', {}, element('a', {href: `#${chart.id}`}, chart.title)));
    document.getElementById('contents').append(element('ul', {}, ...links));
  };

  // One after the other, so that the page can be read and scrolled meanwhile.
  const drawNext = (index) => {
    if (index === sections.length) {
      root.dataset.ready = 'yes';
      return;
    }
    drawSection(sections[index]);
    setTimeout(() => drawNext(index + 1), 0);
  };

  setTheme(stored() ?? (prefersDark.matches ? 'dark' : 'light'));
  themeButton.addEventListener('click', () => {
    setTheme(root.dataset.theme === 'dark' ? 'light' : 'dark');
    try {
      localStorage.setItem('railyard-theme', root.dataset.theme);
    } catch {
      // Then the choice lasts as long as the page.
    }
    redrawAll();
  });
  prefersDark.addEventListener('change', () => {
    if (stored()) return;
    setTheme(prefersDark.matches ? 'dark' : 'light');
    redrawAll();
  });
  let resizing = 0;
  addEventListener('resize', () => {
    clearTimeout(resizing);
    resizing = setTimeout(redrawAll, 120);
  });
  let beforePrint = null;
  addEventListener('beforeprint', () => {
    beforePrint = root.dataset.theme;
    setTheme('light');
    redrawAll();
  });
  addEventListener('afterprint', () => {
    setTheme(beforePrint ?? root.dataset.theme);
    redrawAll();
  });

  writeHead();
  writeContents();
  for (const chart of report.charts) addSection(chart);
  drawNext(0);
})();
