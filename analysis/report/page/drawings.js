// SPDX-License-Identifier: GPL-2.0-only
// Drawings make options of ECharts from the columns of a chart's tables. A drawing is a
// function (tables, look, state) -> {option, height, width, square, controls, facts, chain}.
'use strict';

const drawings = (() => {
  const symbols = ['circle', 'triangle', 'rect', 'diamond', 'roundRect', 'arrow'];

  const colorOf = (look, kind) => look.palette[Math.max(0, look.kinds.indexOf(kind)) % look.palette.length];

  // A decade more than the values would make a chart that is mostly empty.
  const logEnds = (values) => {
    const least = values.reduce((a, b) => Math.min(a, b), Infinity);
    const greatest = values.reduce((a, b) => Math.max(a, b), -Infinity);
    return {min: 10 ** Math.floor(Math.log10(least * 1.1)), max: 10 ** Math.ceil(Math.log10(greatest))};
  };

  const distinct = (values) => [...new Set(values)];

  const rows = (table) => {
    const names = Object.keys(table);
    const count = names.length === 0 ? 0 : table[names[0]].length;
    return Array.from({length: count}, (_, i) =>
      Object.fromEntries(names.map((name) => [name, table[name][i]])));
  };

  // Places of panels of equal size, row by row: grids of ECharts, and a title above each.
  const panelsOf = (look, names, {perRow, height, top = 34, square = false}) => {
    const columns = Math.max(1, Math.min(perRow, names.length));
    const gap = 3;
    const width = (100 - gap * (columns - 1)) / columns;
    const rowHeight = height + 52;
    const at = (i) => ({left: `${(i % columns) * (width + gap)}%`, top: top + Math.floor(i / columns) * rowHeight});
    return {
      grid: names.map((_, i) => ({
        left: at(i).left, top: at(i).top + 22, width: `${width - 3}%`, height, containLabel: !square})),
      title: names.map((name, i) => ({
        text: name, left: at(i).left, top: at(i).top,
        textStyle: {color: look.ink, fontSize: 13, fontWeight: 600, width: 320, overflow: 'truncate'}})),
      height: top + Math.ceil(names.length / columns) * rowHeight + 8,
    };
  };

  // Several lines for a tooltip: [label, text] each, escaped.
  const lines = (title, entries) =>
    `<b>${format.html(title)}</b><br>` +
    entries
      .filter(([, text]) => text !== null && text !== undefined && text !== '')
      .map(([label, text]) => `${format.html(label)}: ${format.html(text)}`)
      .join('<br>');

  const isWide = (values) => {
    let least = Infinity;
    let greatest = -Infinity;
    for (const value of values) {
      if (value <= 0) return false;
      least = Math.min(least, value);
      greatest = Math.max(greatest, value);
    }
    return greatest / least > 20;
  };

  const axis = (look, more) => ({
    axisLine: {lineStyle: {color: look.faint}},
    axisTick: {lineStyle: {color: look.faint}},
    axisLabel: {color: look.soft, hideOverlap: true, ...more.axisLabel},
    splitLine: {lineStyle: {color: look.line}},
    nameTextStyle: {color: look.soft},
    minorSplitLine: {show: false},
    ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== 'axisLabel')),
  });
  const timeAxis = (look, more) =>
    axis(look, {type: 'value', ...more, axisLabel: {formatter: format.time, ...more?.axisLabel}});

  const base = (look) => ({
    animation: false,
    color: look.palette,
    textStyle: {fontFamily: look.font, color: look.ink},
    tooltip: {
      confine: true,
      backgroundColor: look.raised,
      borderColor: look.line,
      textStyle: {color: look.ink, fontSize: 12},
      extraCssText: 'max-width: 420px; white-space: normal; overflow-wrap: anywhere;',
    },
    legend: {
      top: 0, left: 0, type: 'scroll', textStyle: {color: look.ink},
      pageTextStyle: {color: look.soft}, pageIconColor: look.soft, pageIconInactiveColor: look.line,
      itemWidth: 14, itemHeight: 10,
    },
    grid: {left: 8, right: 20, top: 34, bottom: 8, containLabel: true},
  });

  const zoom = (look, more = {}) => [
    {type: 'inside', zoomOnMouseWheel: 'ctrl', ...more},
    {type: 'slider', height: 18, bottom: 6, borderColor: look.line, fillerColor: look.fault,
      textStyle: {color: look.soft}, labelFormatter: more.labelFormatter ?? '',
      dataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}},
      selectedDataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}}, ...more},
  ];

  // A ratio of each collective over the time at which it began, or in the order in which they did.
  const overTime = (ratio, name) => (tables, look, state) => {
    const table = Object.values(tables)[0];
    const all = rows(table).sort((a, b) => a.start_ps - b.start_ps);
    all.forEach((row, i) => { row.order = i + 1; });
    const byOrder = state.x === 'order';
    const x = byOrder ? 'order' : 'start_ps';
    const kinds = look.kinds.filter((kind) => all.some((row) => row.kind === kind));
    const faults = rows(look.faults).filter((fault) => fault.from_ps !== null);
    const greatestX = all.length ? all[all.length - 1][x] : 0;
    const place = (ps) => {
      if (!byOrder) return Math.min(ps, greatestX);
      const at = all.findIndex((row) => row.start_ps >= ps);
      return at < 0 ? greatestX : all[at].order;
    };
    const large = all.length > 4000;
    const option = {
      ...base(look),
      dataZoom: zoom(look, {
        xAxisIndex: 0, filterMode: 'none',
        labelFormatter: byOrder ? (v) => `#${Math.round(v)}` : format.time,
      }),
      xAxis: byOrder
        ? axis(look, {type: 'value', min: 'dataMin', max: 'dataMax', minInterval: 1, splitLine: {show: false},
          axisLabel: {formatter: (v) => `#${v}`}})
        : timeAxis(look, {min: 0, splitLine: {show: false}}),
      yAxis: axis(look, {
        type: isWide(table[ratio]) ? 'log' : 'value', ...(isWide(table[ratio]) ? logEnds(table[ratio]) : {}),
        name, nameLocation: 'end', nameGap: 12,
        nameTextStyle: {color: look.soft, align: 'left', padding: [0, 0, 0, -20]},
        scale: true, axisLabel: {formatter: format.tick},
      }),
      grid: {left: 8, right: 28, top: 56, bottom: 40, containLabel: true},
      series: kinds.map((kind, i) => ({
        name: kind, type: 'scatter', clip: false, color: colorOf(look, kind), symbol: symbols[i % symbols.length],
        symbolSize: all.length > 2000 ? 5 : 8, large, largeThreshold: 4000,
        itemStyle: {opacity: 0.75},
        dimensions: ['x', 'y', 'index'],
        data: all.filter((row) => row.kind === kind).map((row) => ({value: [row[x], row[ratio]], row})),
        markArea: i === 0 && faults.length > 0 && faults.length <= 200 ? {
          silent: true, itemStyle: {color: look.fault, borderColor: look.mark, borderWidth: 0.5, borderType: 'dashed'},
          label: {show: faults.length <= 4, color: look.mark, position: 'insideTopLeft', distance: 4, fontSize: 11},
          data: faults.map((fault) => [
            {name: fault.name, xAxis: place(fault.from_ps)},
            {xAxis: fault.until_ps === null ? greatestX : place(fault.until_ps)}]),
        } : undefined,
      })),
    };
    option.tooltip.formatter = ({data}) => lines(`${data.row.kind}, ${format.bytes(data.row.bytes)}`, [
      [name, format.ratio(data.row[ratio])],
      ['duration', data.row.duration_ps === null ? '' : format.time(data.row.duration_ps)],
      ['without faults', data.row.baseline_duration_ps === null ? '' : format.time(data.row.baseline_duration_ps)],
      ['began at', format.time(data.row.start_ps)],
      ['ranks', format.count(data.row.ranks)],
      ['communicator', data.row.communicator],
      ['lost packets to a fault', data.row.hit_by_fault ? 'yes' : ''],
      ['index', data.row.collective_index]]);
    return {
      option, height: 340, width: 'most',
      controls: [{name: 'x', label: 'Across', choices: [['time', 'time'], ['order', 'order of start']]}],
    };
  };

  const distribution = (ratio, name) => (tables, look) => {
    const table = Object.values(tables)[0];
    const all = rows(table);
    const kinds = look.kinds.filter((kind) => all.some((row) => row.kind === kind));
    const option = {
      ...base(look),
      xAxis: axis(look, {type: isWide(table[ratio]) ? 'log' : 'value', scale: true,
        ...(isWide(table[ratio]) ? logEnds(table[ratio]) : {}), name, nameLocation: 'middle',
        nameGap: 26, axisLabel: {formatter: format.tick}}),
      yAxis: axis(look, {type: 'value', min: 0, max: 1, axisLabel: {formatter: (v) => `${v * 100} %`}}),
      grid: {left: 8, right: 28, top: 34, bottom: 26, containLabel: true},
      series: kinds.map((kind, i) => {
        const points = all.filter((row) => row.kind === kind).map((row) => [row[ratio], row.share]);
        return {
          name: kind, type: 'line', clip: false, color: colorOf(look, kind), step: 'end', showSymbol: points.length === 1, symbolSize: 7,
          symbol: symbols[i % symbols.length], lineStyle: {width: 2, type: ['solid', 'dashed', 'dotted'][i % 3]},
          data: points.length > 0 ? [[points[0][0], 0], ...points] : [],
        };
      }),
    };
    option.tooltip.trigger = 'axis';
    option.tooltip.formatter = (items) => lines(`${name} ≤ ${format.ratio(items[0].value[0])}`,
      items.map((item) => [item.seriesName, format.share(item.value[1])]));
    return {option, height: 340, width: 'rest'};
  };

  const groupName = (row, gap = ', ') =>
    `${row.kind}${gap}${format.bytes(row.bytes)}, ${row.ranks} rank${row.ranks === 1 ? '' : 's'}`;

  // A row for each group: from the shortest to the longest, the median, and the bound.
  const durations = (tables, look) => {
    const all = rows(tables.durations).reverse();
    const names = all.map((row) => groupName(row, look.isNarrow ? '\n' : ', '));
    const log = isWide(all.flatMap((row) => [row.bound_ps || row.min_ps, row.max_ps]));
    const range = (params, api) => {
      const row = all[params.dataIndex];
      const y = api.coord([row.min_ps, params.dataIndex])[1];
      const at = (ps) => api.coord([ps, params.dataIndex])[0];
      const color = colorOf(look, row.kind);
      const half = 6;
      const [from, to] = [at(row.min_ps), at(row.max_ps)];
      const children = [
        {type: 'rect', shape: {x: from, y: y - half / 2, width: Math.max(2, to - from), height: half, r: 3},
          style: {fill: color, opacity: 0.42}},
        {type: 'circle', shape: {cx: at(row.p50_ps), cy: y, r: 5}, style: {fill: color, stroke: look.ground, lineWidth: 1.5}}];
      if (row.bound_ps > 0) {
        children.push({type: 'rect', shape: {x: at(row.bound_ps) - 1.25, y: y - 10, width: 2.5, height: 20},
          style: {fill: look.ink}});
      }
      return {type: 'group', children};
    };
    const option = {
      ...base(look),
      legend: undefined,
      grid: {left: 8, right: 28, top: 8, bottom: 8, containLabel: true},
      xAxis: timeAxis(look, {type: log ? 'log' : 'value', min: log ? undefined : 0}),
      yAxis: axis(look, {type: 'category', data: names, splitLine: {show: false},
        axisLabel: {interval: 0, width: look.isNarrow ? 130 : 260, overflow: 'truncate',
          color: look.ink}}),
      series: [{
        name: 'durations', type: 'custom', renderItem: range, clip: true,
        encode: {x: [1, 2, 3, 4], y: 0},
        data: all.map((row, i) => [i, row.min_ps, row.max_ps, row.p50_ps, row.bound_ps || row.min_ps]),
      }],
    };
    option.tooltip.formatter = ({dataIndex}) => {
      const row = all[dataIndex];
      return lines(groupName(row), [
        ['collectives', format.count(row.count)], ['bound', format.time(row.bound_ps)],
        ['shortest', format.time(row.min_ps)], ['median', format.time(row.p50_ps)],
        ['99th percentile', format.time(row.p99_ps)], ['longest', format.time(row.max_ps)],
        ['median over bound', row.bound_ps > 0 ? format.ratio(row.p50_ps / row.bound_ps) : '']]);
    };
    return {option, height: 60 + all.length * (look.isNarrow ? 40 : 28)};
  };

  // Matrices of GPUs. Cells: [source, destination, bytes].
  const matrix = (look, cells, ends) => {
    const gpus = look.run.gpus;
    const perServer = Number.isInteger(gpus / look.run.servers) ? gpus / look.run.servers : 0;
    const exponent = (bytes) => Math.log10(Math.max(1, bytes));
    const [least, greatest] = ends;
    const block = look.block;
    const count = Math.ceil(gpus / block);
    const names = Array.from({length: count}, (_, i) => String(i * block));
    const borders = [];
    if (perServer > 0 && perServer % block === 0 && gpus / perServer <= 64) {
      for (let at = perServer / block; at < count; at += perServer / block) borders.push(at - 0.5);
    }
    const step = perServer > 0 ? Math.max(1, Math.round(perServer / block)) : Math.ceil(count / 16);
    const every = Math.max(1, Math.ceil(count / step / 16)) * step;
    const side = (name, more) => axis(look, {
      type: 'category', data: names, name, nameLocation: 'middle', splitLine: {show: false},
      axisTick: {show: false}, axisLabel: {interval: (i) => i % every === 0}, ...more});
    return {
      ...base(look),
      legend: undefined,
      grid: {left: 26, right: 8, top: 30, bottom: 56, containLabel: true},
      xAxis: side('to GPU', {nameGap: 24, position: 'top'}),
      yAxis: side('from GPU', {inverse: true, nameGap: 32}),
      visualMap: {
        type: 'continuous', min: exponent(least), max: Math.max(exponent(greatest), exponent(least) + 0.01),
        dimension: 2, calculable: true, orient: 'horizontal', left: 'center', bottom: 0, itemWidth: 12, itemHeight: 180,
        precision: 2, inRange: {color: look.ramp}, textStyle: {color: look.soft},
        formatter: (value) => format.bytes(10 ** value),
      },
      series: [{
        name: 'payload', type: 'heatmap', progressive: 0,
        itemStyle: {borderWidth: count <= 64 ? 0.5 : 0, borderColor: look.ground},
        data: cells.map(([from, to, bytes]) => [to / block, from / block, exponent(bytes), bytes]),
        encode: {x: 0, y: 1, value: 2, tooltip: 3},
        markLine: borders.length === 0 ? undefined : {
          silent: true, symbol: 'none', label: {show: false}, lineStyle: {color: look.faint, type: 'solid', width: 1},
          data: borders.flatMap((at) => [{xAxis: at}, {yAxis: at}])},
      }],
    };
  };

  const pairs = (tables, look, state) => {
    const all = rows(tables.pairs);
    const tiers = distinct(all.map((row) => row.tiers_crossed));
    const chosen = all.filter((row) => !state.tier || state.tier === 'all' || row.tiers_crossed === state.tier);
    const cells = new Map();
    for (const row of chosen) {
      const key = `${row.source_gpu}/${row.destination_gpu}`;
      const cell = cells.get(key);
      if (cell) cell[2] += row.payload_bytes;
      else cells.set(key, [row.source_gpu, row.destination_gpu, row.payload_bytes, row.tiers_crossed]);
    }
    const bytes = all.map((row) => row.payload_bytes);
    const values = [...cells.values()];
    const option = matrix(look, values, [Math.min(...bytes), Math.max(...bytes)]);
    option.tooltip.formatter = ({dataIndex}) => {
      const [from, to, sum, tier] = values[dataIndex];
      return lines(`GPU ${from} to GPU ${to}`, [['payload', format.bytes(sum)], ['over', tier]]);
    };
    return {
      option, height: 'square', square: true, width: look.has('iteration_pairs') ? 'half' : '',
      controls: tiers.length < 2 ? [] : [{name: 'tier', label: 'Over',
        choices: [['all', 'every tier'], ...tiers.map((tier) => [tier, tier])]}],
    };
  };

  return {
    stretch_over_time: overTime('stretch', 'stretch'),
    stretch_distribution: distribution('stretch', 'stretch'),
    slowdown_over_time: overTime('slowdown', 'duration over bound'),
    slowdown_distribution: distribution('slowdown', 'duration over bound'),
    interference_over_time: overTime('interference', 'interference'),
    interference_distribution: distribution('interference', 'interference'),
    durations,
    pairs,
    parts: {rows, lines, axis, timeAxis, base, distinct, isWide, logEnds, panelsOf, matrix, zoom, colorOf, symbols},
  };
})();
