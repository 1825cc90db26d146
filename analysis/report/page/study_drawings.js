// SPDX-License-Identifier: GPL-2.0-only
// Drawings of studies: figures across axes whose values are in the study's order.
'use strict';

(() => {
  const {rows, lines, axis, base, distinct, isWide, logEnds, panelsOf, symbols} = drawings.parts;

  const axisColumns = (table) => Object.keys(table).filter((column) => column.startsWith('axis: '));
  const nameOf = (column) => column.slice('axis: '.length);
  const number = (value) => (value === null || value === undefined ? '–' : String(Number(value.toPrecision(6))));

  const choice = (name, label, values, text = (value) => value) =>
    ({name, label, choices: values.map((value) => [value, text(value)])});

  // One figure along one axis: a line for each value of another, a panel for each combination of the rest.
  const studyLines = (tables, look, state) => {
    const table = tables.study_lines;
    const columns = axisColumns(table);
    const figures = distinct(table.figure);
    const figure = state.figure ?? figures[0];
    const across = state.across ?? [...columns].sort((a, b) => distinct(table[b]).length - distinct(table[a]).length)[0];
    const others = columns.filter((column) => column !== across);
    const by = others[0];
    const rest = others.slice(1);
    const all = rows(table).filter((row) => row.figure === figure);
    const places = distinct(table[across]);
    const lineNames = by ? distinct(table[by]) : [''];
    const panelName = (row) => rest.map((column) => `${nameOf(column)} ${row[column]}`).join(', ');
    const panelNames = distinct(all.map(panelName)).slice(0, 12);
    const panels = panelsOf(look, panelNames, {
      perRow: look.isNarrow ? 1 : 3, height: panelNames.length === 1 ? 280 : 190, top: by ? 30 : 8});
    const values = all.flatMap((row) => [row.mean, row.low ?? row.mean, row.high ?? row.mean]);
    const log = isWide(values);
    const series = [];
    panelNames.forEach((panel, p) => lineNames.forEach((name, i) => {
      const points = all.filter((row) => panelName(row) === panel && (!by || row[by] === name))
        .map((row) => ({row, at: places.indexOf(row[across])})).sort((a, b) => a.at - b.at);
      if (points.length === 0) return;
      const color = look.palette[i % look.palette.length];
      const title = by ? `${nameOf(by)} ${name}` : figure;
      const place = {xAxisIndex: p, yAxisIndex: p, color, name: title};
      const banded = points.filter(({row}) => row.low !== null && row.high !== null);
      if (banded.length > 1) {
        series.push({
          ...place, type: 'custom', silent: true, z: 1, data: banded.map(({row, at}) => [at, row.low, row.high]),
          encode: {x: 0, y: [1, 2]},  // so that the axis holds the band
          renderItem: (params, api) => (params.dataIndex > 0 ? undefined : {
            type: 'polygon', style: {fill: color, opacity: 0.16},
            shape: {points: [
              ...banded.map(({row, at}) => api.coord([at, row.low])),
              ...[...banded].reverse().map(({row, at}) => api.coord([at, row.high]))]}}),
        });
      }
      series.push({
        ...place, type: 'line', symbol: symbols[i % symbols.length], symbolSize: 7,
        lineStyle: {width: 2, type: ['solid', 'dashed', 'dotted'][i % 3]},
        data: points.map(({row, at}) => ({value: [at, row.mean], row})),
      });
    }));
    const option = {
      ...base(look), title: panels.title, grid: panels.grid, series,
      xAxis: panelNames.map((_, i) => axis(look, {gridIndex: i, type: 'category', data: places, name: nameOf(across),
        nameLocation: 'middle', nameGap: 24, splitLine: {show: false}})),
      yAxis: panelNames.map((_, i) => axis(look, {gridIndex: i, type: log ? 'log' : 'value', scale: true,
        ...(log ? logEnds(values) : {}), axisLabel: {formatter: number}})),
    };
    if (!by) option.legend = undefined;
    option.tooltip.formatter = ({data: {row}}) => lines(figure, [
      ...columns.map((column) => [nameOf(column), row[column]]),
      ['mean', number(row.mean)], ['95 % bounds', row.low === null ? '' : `${number(row.low)} to ${number(row.high)}`],
      ['runs', row.runs]]);
    return {
      option, height: panels.height,
      controls: [
        ...(figures.length > 1 ? [choice('figure', 'Figure', figures)] : []),
        ...(columns.length > 1 ? [choice('across', 'Across', [across, ...others], nameOf)] : [])],
    };
  };

  // One figure over two axes; values of the others are chosen.
  const studyHeat = (tables, look, state) => {
    const table = tables.study_heat;
    const columns = axisColumns(table);
    const figures = distinct(table.figure);
    const figure = state.figure ?? figures[0];
    const [across, down] = columns;
    const rest = columns.slice(2);
    const chosen = (column) => state[column] ?? table[column][0];
    const all = rows(table).filter((row) => row.figure === figure && row.mean !== null &&
      rest.every((column) => row[column] === chosen(column)));
    const xs = distinct(table[across]);
    const ys = distinct(table[down]);
    const means = all.map((row) => row.mean);
    const log = isWide(means);
    const scaled = (value) => (log ? Math.log10(value) : value);
    const least = means.reduce((a, b) => Math.min(a, scaled(b)), Infinity);
    const greatest = means.reduce((a, b) => Math.max(a, scaled(b)), -Infinity);
    const side = (name, data, more) => axis(look, {
      type: 'category', data, name: nameOf(name), nameLocation: 'middle', splitLine: {show: false},
      axisTick: {show: false}, ...more});
    const option = {
      ...base(look), legend: undefined,
      grid: {left: 52, right: 16, top: 8, bottom: 84, containLabel: true},
      xAxis: side(across, xs, {nameGap: 26}),
      yAxis: side(down, ys, {nameGap: 60}),
      visualMap: {
        type: 'continuous', min: least, max: greatest > least ? greatest : least + 1, dimension: 2, calculable: true,
        orient: 'horizontal', left: 'center', bottom: 0, itemWidth: 12, itemHeight: 180, precision: 3,
        inRange: {color: look.ramp}, textStyle: {color: look.soft}, formatter: (value) => number(log ? 10 ** value : value),
      },
      series: [{
        name: figure, type: 'heatmap', itemStyle: {borderWidth: 1, borderColor: look.ground},
        data: all.map((row) => ({value: [xs.indexOf(row[across]), ys.indexOf(row[down]), scaled(row.mean)], row}))}],
    };
    option.tooltip.formatter = ({data: {row}}) => lines(figure, [
      ...columns.map((column) => [nameOf(column), row[column]]), ['mean', number(row.mean)], ['runs', row.runs]]);
    return {
      option, height: 150 + 34 * ys.length,
      controls: [
        ...(figures.length > 1 ? [choice('figure', 'Figure', figures)] : []),
        ...rest.map((column) => choice(column, nameOf(column), distinct(table[column])))],
    };
  };

  Object.assign(drawings, {study_lines: studyLines, study_heat: studyHeat});
})();
