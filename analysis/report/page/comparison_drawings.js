// SPDX-License-Identifier: GPL-2.0-only
// Drawings of comparisons: several results beside one another, or one panel each.
'use strict';

(() => {
  const {rows, lines, axis, timeAxis, base, distinct, isWide, logEnds, panelsOf, colorOf, symbols} = drawings.parts;

  const resultColor = (look, all, name) => look.palette[all.indexOf(name) % look.palette.length];

  const signed = (share) => {
    if (share === 0) return '0 %';
    if (share >= 10) return `× ${format.ratio(share + 1)}`;
    return `${share > 0 ? '+' : '−'}${format.share(Math.abs(share))}`;
  };

  // A row for each result and kind: the difference, and its interval.
  const differences = (tables, look) => {
    const all = rows(tables.compared_differences).reverse();
    const results = distinct(tables.compared_differences.result);
    const names = all.map((row) => (results.length > 1 ? `${row.result}: ${row.kind}` : row.kind));
    const interval = (params, api) => {
      const row = all[params.dataIndex];
      const at = (value) => api.coord([value, params.dataIndex]);
      const color = row.kind === 'all' ? look.ink : colorOf(look, row.kind);
      const [x, y] = at(row.difference);
      const children = [{type: 'circle', shape: {cx: x, cy: y, r: row.kind === 'all' ? 6 : 5}, style: {fill: color}}];
      if (row.low !== null && row.low !== undefined) {
        const [from] = at(row.low);
        const [to] = at(row.high);
        children.unshift({type: 'rect', shape: {x: from, y: y - 3, width: Math.max(2, to - from), height: 6, r: 3},
          style: {fill: color, opacity: 0.42}});
      }
      return {type: 'group', children};
    };
    const option = {
      ...base(look),
      legend: undefined,
      grid: {left: 8, right: 36, top: 8, bottom: 8, containLabel: true},
      xAxis: axis(look, {type: 'value', axisLabel: {formatter: signed}}),
      yAxis: axis(look, {type: 'category', data: names, splitLine: {show: false},
        axisLabel: {interval: 0, color: look.ink, width: look.isNarrow ? 130 : 260, overflow: 'truncate'}}),
      series: [{
        name: 'difference', type: 'custom', renderItem: interval, encode: {x: [1, 2, 3], y: 0},
        data: all.map((row, i) => [i, row.difference, row.low ?? row.difference, row.high ?? row.difference]),
        markLine: {silent: true, symbol: 'none', label: {show: false},
          lineStyle: {color: look.soft, type: 'solid', width: 1}, data: [{xAxis: 0}]},
      }],
    };
    option.tooltip.formatter = ({dataIndex}) => {
      const row = all[dataIndex];
      return lines(`${row.result}: ${row.kind}`, [
        ['verdict', row.verdict], ['difference', signed(row.difference)],
        ['95 % confidence', row.low === null ? '' : `${signed(row.low)} to ${signed(row.high)}`],
        ['pairs', format.count(row.pairs)], ['of these equal', format.count(row.equal)],
        ['of these slower', format.count(row.slower)],
        ['in all, before', format.time(row.first_total_ps)], ['in all', format.time(row.second_total_ps)],
        ['median ratio', format.ratio(row.median_ratio)], ['largest ratio', format.ratio(row.largest_ratio)]]);
    };
    return {option, height: 50 + 28 * all.length};
  };

  // A panel for each result: its ratios in the order of the workload, on one scale.
  const ratios = (tables, look) => {
    const table = tables.compared_ratios;
    const all = rows(table);
    const names = distinct(table.result);
    const kinds = look.kinds.filter((kind) => all.some((row) => row.kind === kind));
    const panels = panelsOf(look, names, {perRow: 1, height: names.length > 2 ? 120 : 190, top: 30});
    const log = isWide(table.ratio);
    const series = [];
    names.forEach((name, panel) => kinds.forEach((kind, i) => series.push({
      name: kind, type: 'scatter', xAxisIndex: panel, yAxisIndex: panel, color: colorOf(look, kind),
      symbol: symbols[i % symbols.length], symbolSize: all.length > 2000 ? 4 : 7, itemStyle: {opacity: 0.75},
      data: all.filter((row) => row.result === name && row.kind === kind)
        .map((row) => ({value: [row.collective_index, row.ratio], row})),
      markLine: i > 0 ? undefined : {silent: true, symbol: 'none', label: {show: false},
        lineStyle: {color: look.soft, type: 'solid', width: 1}, data: [{yAxis: 1}]},
    })));
    const option = {
      ...base(look), title: panels.title, grid: panels.grid, series,
      xAxis: names.map((_, i) => axis(look, {gridIndex: i, type: 'value', min: 0,
        max: Math.max(...table.collective_index, 1), splitLine: {show: false}, axisLabel: {formatter: (v) => `#${v}`}})),
      yAxis: names.map((_, i) => axis(look, {gridIndex: i, type: log ? 'log' : 'value', scale: true,
        ...(log ? logEnds(table.ratio) : {}), axisLabel: {formatter: format.tick}})),
    };
    option.tooltip.formatter = ({data: {row}}) => lines(`${row.kind}, ${format.bytes(row.bytes)}`, [
      ['duration', format.time(row.second_duration_ps)], ['before', format.time(row.first_duration_ps)],
      ['ratio', format.ratio(row.ratio)], ['index', row.collective_index]]);
    return {option, height: panels.height};
  };

  // A panel for each kind: the distribution of its durations, a line for each result.
  const durations = (tables, look) => {
    const table = tables.compared_durations;
    const all = rows(table);
    const kinds = distinct(table.kind);
    const results = distinct(table.result);
    const panels = panelsOf(look, kinds, {perRow: look.isNarrow ? 1 : 3, height: 190, top: 30});
    const series = [];
    kinds.forEach((kind, panel) => results.forEach((result, i) => {
      const points = all.filter((row) => row.kind === kind && row.result === result)
        .map((row) => [row.duration_ps, row.share]);
      series.push({
        name: result, type: 'line', step: 'end', xAxisIndex: panel, yAxisIndex: panel,
        color: resultColor(look, results, result), symbol: symbols[i % symbols.length],
        showSymbol: points.length === 1, symbolSize: 7,
        lineStyle: {width: 2, type: ['solid', 'dashed', 'dotted'][i % 3]},
        data: points.length > 0 ? [[points[0][0], 0], ...points] : [],
      });
    }));
    const option = {
      ...base(look), title: panels.title, grid: panels.grid, series,
      xAxis: kinds.map((kind, i) => {
        const values = all.filter((row) => row.kind === kind).map((row) => row.duration_ps);
        return timeAxis(look, {gridIndex: i, scale: true, splitNumber: 3,
          ...(isWide(values) ? {type: 'log', ...logEnds(values)} : {})});
      }),
      yAxis: kinds.map((_, i) => axis(look, {gridIndex: i, type: 'value', min: 0, max: 1,
        axisLabel: {formatter: (v) => `${v * 100} %`}})),
    };
    option.tooltip.formatter = ({seriesName, value}) => lines(seriesName, [
      ['at most', format.time(value[0])], ['share', format.share(value[1])]]);
    return {option, height: panels.height};
  };

  const tiers = (tables, look) => {
    const all = rows(tables.compared_tiers);
    const known = distinct(tables.compared_tiers.tier);
    const results = distinct(tables.compared_tiers.result);
    const bytes = new Map(all.map((row) => [`${row.result}/${row.tier}`, row.payload_bytes]));
    const option = {
      ...base(look),
      grid: {left: 8, right: 28, top: 34, bottom: 8, containLabel: true},
      xAxis: axis(look, {type: 'value', axisLabel: {formatter: format.bytes}}),
      yAxis: axis(look, {type: 'category', data: known, inverse: true, splitLine: {show: false},
        axisLabel: {interval: 0, color: look.ink}}),
      series: results.map((result) => ({
        name: result, type: 'bar', barMaxWidth: 14, color: resultColor(look, results, result),
        data: known.map((tier) => bytes.get(`${result}/${tier}`) ?? 0)})),
    };
    option.tooltip.trigger = 'axis';
    option.tooltip.axisPointer = {type: 'shadow'};
    option.tooltip.formatter = (items) => lines(items[0].name,
      items.map((item) => [item.seriesName, format.bytes(item.value)]));
    return {option, height: 70 + known.length * (16 + 16 * results.length)};
  };

  // A matrix for each result, all on one scale.
  const pairs = (tables, look) => {
    const all = rows(tables.compared_pairs);
    const names = distinct(tables.compared_pairs.result);
    const places = distinct([...tables.compared_pairs.source_gpu, ...tables.compared_pairs.destination_gpu])
      .sort((a, b) => a - b);
    const place = new Map(places.map((gpu, i) => [gpu, i]));
    const exponent = (bytes) => Math.log10(Math.max(1, bytes));
    const exponents = all.map((row) => exponent(row.payload_bytes));
    const least = exponents.reduce((a, b) => Math.min(a, b), Infinity);
    const greatest = exponents.reduce((a, b) => Math.max(a, b), -Infinity);
    const panels = panelsOf(look, names, {perRow: look.isNarrow ? 1 : 3, height: look.isNarrow ? 280 : 320, top: 8});
    const side = (i, more) => axis(look, {type: 'category', gridIndex: i, data: places, splitLine: {show: false},
      axisTick: {show: false}, ...more});
    const option = {
      ...base(look), legend: undefined, title: panels.title, grid: panels.grid,
      xAxis: names.map((_, i) => side(i, {})),
      yAxis: names.map((_, i) => side(i, {inverse: true})),
      visualMap: {
        type: 'continuous', min: least, max: Math.max(greatest, least + 0.01), dimension: 2, calculable: true,
        orient: 'horizontal', left: 'center', bottom: 0, itemWidth: 12, itemHeight: 180, precision: 2,
        inRange: {color: look.ramp}, textStyle: {color: look.soft}, formatter: (value) => format.bytes(10 ** value),
      },
      series: names.map((name, i) => ({
        name, type: 'heatmap', xAxisIndex: i, yAxisIndex: i, progressive: 0,
        data: all.filter((row) => row.result === name).map((row) => [
          place.get(row.destination_gpu), place.get(row.source_gpu), exponent(row.payload_bytes), row.payload_bytes]),
      })),
    };
    option.tooltip.formatter = ({seriesName, value}) => lines(seriesName, [
      ['from GPU', places[value[1]]], ['to GPU', places[value[0]]], ['payload', format.bytes(value[3])]]);
    return {option, height: panels.height + 40};
  };

  const measureNames = {
    simulated_time_ps: 'Time', stretch_max: 'Largest stretch', network_cost: 'Cost', network_watts: 'Power, W',
    bisection_bps: 'Bisection', gpus: 'GPUs', switches: 'Switches', network_cables: 'Cables between servers',
    left_server_share: 'Payload that left its server', reached_spine_share: 'Payload that reached the spine',
  };

  // A panel for each measure: a bar for each fabric.
  const measures = (tables, look) => {
    const table = tables.fabrics_measures;
    const all = rows(table);
    const columns = Object.keys(measureNames).filter((column) =>
      table[column].some((value) => value !== null && value !== 0));
    const panels = panelsOf(look, columns.map((column) => measureNames[column]), {
      perRow: look.isNarrow ? 1 : 3, height: 26 + 20 * all.length, top: 8});
    const text = (column) => (value) => (column.endsWith('_share') ? format.share(value) : format.cell(column, value));
    const isFirst = (i) => look.isNarrow || i % 3 === 0;
    const option = {
      ...base(look), legend: undefined, title: panels.title,
      grid: panels.grid,
      xAxis: columns.map((column, i) => axis(look, {gridIndex: i, type: 'value', splitNumber: 3,
        axisLabel: {formatter: text(column)}})),
      yAxis: columns.map((_, i) => axis(look, {gridIndex: i, type: 'category', inverse: true, data: table.fabric,
        splitLine: {show: false}, axisTick: {show: false},
        axisLabel: {show: isFirst(i), interval: 0, color: look.ink, width: 170, overflow: 'truncate'}})),
      series: columns.map((column, i) => ({
        name: column, type: 'bar', xAxisIndex: i, yAxisIndex: i, barMaxWidth: 14,
        data: all.map((row, at) => ({value: row[column], row, itemStyle: {color: look.palette[at % look.palette.length]}})),
      })),
    };
    option.tooltip.formatter = ({seriesName, data: {row}}) => lines(row.fabric, [
      ['status', row.status], [measureNames[seriesName], text(seriesName)(row[seriesName])]]);
    return {option, height: panels.height};
  };

  const cost = (tables, look) => {
    const all = rows(tables.fabrics_cost).filter((row) => row.simulated_time_ps !== null);
    const option = {
      ...base(look), legend: undefined,
      grid: {left: 8, right: 60, top: 34, bottom: 26, containLabel: true},
      xAxis: axis(look, {type: 'value', scale: true, name: 'cost of the network', nameLocation: 'middle', nameGap: 26,
        axisLabel: {formatter: format.count}}),
      yAxis: timeAxis(look, {scale: true}),
      series: all.map((row, i) => ({
        name: row.fabric, type: 'scatter', symbol: symbols[i % symbols.length], symbolSize: 11,
        color: look.palette[tables.fabrics_cost.fabric.indexOf(row.fabric) % look.palette.length],
        data: [{value: [row.network_cost, row.simulated_time_ps], row}],
        label: {show: all.length <= 12, position: 'top', formatter: row.fabric, color: look.ink, fontSize: 11},
        labelLayout: {hideOverlap: true},
      })),
    };
    option.tooltip.formatter = ({data: {row}}) => lines(row.fabric, [
      ['status', row.status], ['time', format.time(row.simulated_time_ps)], ['cost', format.count(row.network_cost)],
      ['power', `${format.count(row.network_watts)} W`]]);
    return {option, height: 360};
  };

  Object.assign(drawings, {
    compared_differences: differences,
    compared_ratios: ratios,
    compared_durations: durations,
    compared_tiers: tiers,
    compared_pairs: pairs,
    fabrics_measures: measures,
    fabrics_cost: cost,
  });
})();
