// SPDX-License-Identifier: GPL-2.0-only
// Drawings of links, of the fabric, of faults and of causes.
'use strict';

(() => {
  const {rows, lines, axis, timeAxis, base, distinct, isWide, matrix, zoom, colorOf, symbols} = drawings.parts;

  // One bar for each row, from the top, in parts that are stacked.
  // `named`: whether a legend names the parts; by default if there are several.
  const stackedBars = (look, names, parts, text, {named = parts.length > 1, ...more} = {}) => {
    const option = {
      ...base(look),
      ...(named ? {} : {legend: undefined}),
      grid: {left: 8, right: 28, top: named ? 34 : 8, bottom: 8, containLabel: true},
      xAxis: axis(look, {type: 'value', axisLabel: {formatter: text}, ...more.xAxis}),
      yAxis: axis(look, {type: 'category', data: names, inverse: true, splitLine: {show: false},
        axisLabel: {interval: 0, color: look.ink, width: look.isNarrow ? 120 : 220, overflow: 'truncate'}}),
      series: parts.map((part) => ({
        name: part.name, type: 'bar', stack: 'all', data: part.values, barMaxWidth: 18, color: part.color,
        itemStyle: {decal: part.decal, borderColor: look.ground, borderWidth: 0.5},
      })),
    };
    option.tooltip.trigger = 'axis';
    option.tooltip.axisPointer = {type: 'shadow'};
    option.tooltip.formatter = more.tooltip ?? ((items) => lines(items[0].name,
      items.filter((item) => item.value).map((item) => [item.seriesName, text(item.value)])));
    return option;
  };

  const byteParts = (look, all) => [
    {name: 'payload', color: look.palette[0], values: all.map((row) => row.payload_bytes)},
    {name: 'headers and control', color: look.palette[4], values: all.map((row) => row.header_bytes)},
    {name: 'sent again', color: look.palette[1], values: all.map((row) => row.retransmitted_bytes)},
  ].filter((part) => part.values.some((value) => value > 0));

  const tiers = (tables, look) => {
    const all = rows(tables.tiers);
    const option = stackedBars(look, all.map((row) => row.tier), byteParts(look, all), format.bytes);
    return {option, height: 70 + 38 * all.length, width: 'half'};
  };

  const links = (tables, look) => {
    const all = rows(tables.links);
    const known = distinct(all.map((row) => row.tier));
    const option = stackedBars(look, all.map((row) => row.link), known.map((tier, i) => ({
      name: tier, color: look.palette[i % look.palette.length],
      values: all.map((row) => (row.tier === tier ? row.utilization : 0)),
    })), format.share, {
      named: true,
      tooltip: (items) => {
        const row = all[items[0].dataIndex];
        return lines(row.link, [['tier', row.tier], ['rate', format.rate(row.rate_bps)],
          ['in use', format.share(row.utilization)], ['payload', format.bytes(row.payload_bytes)],
          ['headers and control', format.bytes(row.header_bytes)],
          ['sent again', row.retransmitted_bytes ? format.bytes(row.retransmitted_bytes) : ''],
          ['packets lost', row.dropped_packets || '']]);
      }});
    return {option, height: 76 + 19 * all.length, width: 'half'};
  };

  const bursts = (tables, look) => {
    const all = rows(tables.bursts);
    const known = distinct(all.map((row) => row.tier));
    const option = {
      ...base(look),
      grid: {left: 8, right: 28, top: 44, bottom: 26, containLabel: true},
      xAxis: timeAxis(look, {type: isWide(tables.bursts.period_ps) ? 'log' : 'value', scale: true,
        name: 'period', nameLocation: 'middle', nameGap: 26}),
      yAxis: axis(look, {type: 'value', scale: true, name: 'on', axisLabel: {formatter: format.share}}),
      series: known.map((tier, i) => ({
        name: tier, type: 'scatter', symbol: symbols[i % symbols.length], symbolSize: 7, itemStyle: {opacity: 0.7},
        color: look.palette[i % look.palette.length],
        data: all.filter((row) => row.tier === tier).map((row) => ({value: [row.period_ps, row.duty], row})),
      })),
    };
    option.tooltip.formatter = ({data: {row}}) => lines(row.link, [
      ['period', format.time(row.period_ps)], ['on', format.share(row.duty)],
      ['bursts', format.count(row.bursts)], ['flows', format.count(row.flows)]]);
    return {option, height: 300};
  };

  // The sums of a job's pairs by iteration, of one kind or of all, and the least and greatest of them. The
  // table may have 60,000 rows, and a slider draws at every step.
  const sumsOfTable = new WeakMap();
  const pairSums = (table, job, kind) => {
    if (!sumsOfTable.has(table)) sumsOfTable.set(table, new Map());
    const known = sumsOfTable.get(table);
    const name = JSON.stringify([job, kind]);
    if (known.has(name)) return known.get(name);
    const cells = new Map();
    for (const row of rows(table)) {
      if (row.job !== job || (kind !== 'all' && row.kind !== kind)) continue;
      if (!cells.has(row.iteration)) cells.set(row.iteration, new Map());
      const ofIteration = cells.get(row.iteration);
      const key = `${row.source_gpu}/${row.destination_gpu}`;
      const cell = ofIteration.get(key);
      if (cell) cell[2] += row.payload_bytes;
      else ofIteration.set(key, [row.source_gpu, row.destination_gpu, row.payload_bytes]);
    }
    const sums = {byIteration: new Map(), least: Infinity, greatest: 1};
    for (const [iteration, ofIteration] of cells) {
      const values = [...ofIteration.values()].filter(([, , bytes]) => bytes > 0);
      sums.byIteration.set(iteration, values);
      for (const [, , bytes] of values) {
        sums.least = Math.min(sums.least, bytes);
        sums.greatest = Math.max(sums.greatest, bytes);
      }
    }
    known.set(name, sums);
    return sums;
  };

  const iterations = (tables, look, state) => {
    const table = tables.iteration_pairs;
    const jobs = distinct(table.job);
    const job = state.job ?? jobs[0];
    const kinds = distinct(table.kind.filter((_, i) => table.job[i] === job));
    const numbers = [...pairSums(table, job, 'all').byIteration.keys()].sort((a, b) => a - b);
    const at = Math.min(state.iteration ?? 0, numbers.length - 1);
    const kind = kinds.includes(state.kind) ? state.kind : 'all';
    // One scale for all iterations, or a change could not be seen.
    const {byIteration, least, greatest} = pairSums(table, job, kind);
    const values = byIteration.get(numbers[at]) ?? [];
    const option = matrix(look, values, [Math.min(least, greatest), greatest]);
    option.tooltip.formatter = ({dataIndex}) => {
      const [from, to, sum] = values[dataIndex];
      return lines(`GPU ${from} to GPU ${to}`, [['payload', format.bytes(sum)], ['iteration', numbers[at]]]);
    };
    const choose = (name, label, choices) => ({name, label, choices});
    return {
      option, height: 'square', square: true, width: 'half',
      controls: [
        {name: 'iteration', label: 'Iteration', min: 0, max: numbers.length - 1, text: (i) => `${numbers[i]} of ${numbers[numbers.length - 1]}`},
        ...(kinds.length > 1 ? [choose('kind', 'Of', [['all', 'every kind'], ...kinds.map((one) => [one, one])])] : []),
        ...(jobs.length > 1 ? [choose('job', 'Job', jobs.map((one) => [one, one]))] : [])],
    };
  };

  // ---- Fabric

  const mix = (ramp, share) => {
    const at = Math.min(0.9999, Math.max(0, share)) * (ramp.length - 1);
    const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    const [low, high] = [channels(ramp[Math.floor(at)]), channels(ramp[Math.floor(at) + 1])];
    return `rgb(${low.map((c, i) => Math.round(c + (high[i] - c) * (at % 1))).join(',')})`;
  };

  const fabric = (tables, look) => {
    const cables = rows(tables.fabric_cables);
    const devices = rows(tables.fabric_devices);
    const hottest = Math.max(1e-12, ...cables.map((cable) => cable.utilization));
    const names = distinct(devices.map((device) => device.row));
    const ys = names.map((name) => Math.min(...devices.filter((device) => device.row === name).map((device) => device.y)));
    const faults = cables.filter((cable) => cable.has_fault);
    const server = (name) => name.split('/')[0];
    const top = Math.max(...devices.map((device) => device.y));
    const size = Math.max(2.5, Math.min(10, 420 / Math.max(...names.map((name) => devices.filter((d) => d.row === name).length))));
    // A frame around each server whose devices are drawn.
    const frames = [];
    const inner = devices.filter((device) => ['GPU', 'NIC', 'NVSwitch'].includes(device.row));
    for (const name of distinct(inner.map((device) => server(device.device)))) {
      const own = inner.filter((device) => server(device.device) === name);
      if (own.length < 2) continue;
      const xs = own.map((device) => device.x);
      const heights = own.map((device) => device.y);
      frames.push([
        {name, xAxis: Math.min(...xs) - 0.008, yAxis: Math.min(...heights) - 0.3},
        {xAxis: Math.max(...xs) + 0.008, yAxis: Math.max(...heights) + 0.3}]);
    }
    const option = {
      ...base(look),
      legend: undefined,
      grid: {left: look.isNarrow ? 58 : 72, right: 12, top: 14, bottom: 64},
      xAxis: {type: 'value', min: 0, max: 1, show: false},
      yAxis: {
        type: 'value', min: -0.5, max: top + 0.5, axisLine: {show: false}, axisTick: {show: false}, splitLine: {show: false},
        axisLabel: {color: look.soft, customValues: ys, formatter: (y) => names[ys.findIndex((one) => Math.abs(one - y) < 1e-6)] ?? ''},
      },
      dataZoom: [{type: 'inside', xAxisIndex: 0, zoomOnMouseWheel: 'ctrl', filterMode: 'none'}],
      visualMap: {
        type: 'continuous', min: 0, max: hottest, seriesIndex: [], orient: 'horizontal', left: 'center', bottom: 6,
        itemWidth: 12, itemHeight: 180, inRange: {color: look.ramp}, textStyle: {color: look.soft}, calculable: false,
        text: [`in use ${format.share(hottest)} of the run`, '0 %'], formatter: format.share,
      },
      series: [
        {
          name: 'cables', type: 'custom', clip: true, encode: {x: [0, 2], y: [1, 3]},
          data: cables.map((cable) => [cable.x1, cable.y1, cable.x2, cable.y2]),
          renderItem: (params, api) => {
            const cable = cables[params.dataIndex];
            const [x1, y1] = api.coord([cable.x1, cable.y1]);
            const [x2, y2] = api.coord([cable.x2, cable.y2]);
            const share = cable.utilization / hottest;
            return {type: 'line', shape: {x1, y1, x2, y2}, style: {
              stroke: cable.utilization > 0 ? mix(look.ramp, share) : look.line, lineWidth: 0.8 + 2.2 * share, fill: null}};
          },
          markArea: {silent: true, itemStyle: {color: 'transparent', borderColor: look.faint, borderWidth: 1},
            label: {position: 'insideBottom', color: look.soft, fontSize: 11, distance: 2,
              show: frames.length <= (look.isNarrow ? 4 : 24)}, data: frames},
        },
        {
          name: 'devices', type: 'scatter', symbolSize: size, symbol: 'rect', z: 5,
          itemStyle: {color: look.soft, borderColor: look.ground, borderWidth: 0.5},
          data: devices.map((device) => [device.x, device.y]),
          tooltip: {formatter: ({dataIndex}) => lines(devices[dataIndex].device, [['', devices[dataIndex].row]])},
        },
        {
          name: 'faults', type: 'scatter', z: 6, symbolSize: 15, color: look.mark,
          symbol: 'path://M0,2L2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5Z',
          itemStyle: {borderColor: look.ground, borderWidth: 1},
          data: faults.map((cable) => [(cable.x1 + cable.x2) / 2, (cable.y1 + cable.y2) / 2]),
          tooltip: {formatter: ({dataIndex}) => lines(`fault on ${faults[dataIndex].from} – ${faults[dataIndex].to}`,
            [['packets lost', format.count(faults[dataIndex].dropped_packets)]])},
        }],
    };
    option.tooltip.formatter = ({dataIndex}) => {
      const cable = cables[dataIndex];
      return lines(`${cable.from} – ${cable.to}`, [['tier', cable.tier], ['in use', format.share(cable.utilization)],
        ['bytes, both ways', format.bytes(cable.payload_and_header_bytes)],
        ['packets lost', cable.dropped_packets || ''], ['fault', cable.has_fault ? 'yes' : '']]);
    };
    return {option, height: look.isNarrow ? 380 : 110 + 92 * (top + 1)};
  };

  // ---- Over time

  const spans = (look) => rows(look.faults).filter((fault) => fault.from_ps !== null);

  const overBins = (look, table, groups, of, text, more = {}) => {
    const option = {
      ...base(look),
      grid: {left: 8, right: 28, top: 40, bottom: 44, containLabel: true},
      dataZoom: zoom(look, {labelFormatter: format.time}),
      xAxis: timeAxis(look, {min: 0, splitLine: {show: false}}),
      yAxis: axis(look, {type: 'value', min: 0, axisLabel: {formatter: text}, ...more.yAxis}),
      series: groups.map((group, i) => ({
        name: group, type: 'line', step: 'end', showSymbol: false, sampling: 'max', color: look.palette[i % look.palette.length],
        lineStyle: {width: 1.5, type: ['solid', 'dashed', 'dotted'][Math.floor(i / look.palette.length) % 3]},
        data: of(group),
        markArea: i === 0 && spans(look).length <= 40 ? {silent: true, itemStyle: {color: look.fault}, label: {show: false},
          data: spans(look).map((fault) => [{xAxis: fault.from_ps}, {xAxis: fault.until_ps ?? look.run.simulated_time_ps}])} : undefined,
      })),
    };
    option.tooltip.trigger = 'axis';
    option.tooltip.formatter = (items) => lines(`at ${format.time(items[0].value[0])}`,
      items.map((item) => [item.seriesName, text(item.value[1])]));
    return option;
  };

  const utilization = (tables, look, state) => {
    const all = rows(tables.utilization);
    const figure = state.figure ?? 'greatest';
    const option = overBins(look, tables.utilization, distinct(all.map((row) => row.tier)),
      (tier) => all.filter((row) => row.tier === tier).map((row) => [row.begin_ps, row[figure]]), format.share);
    return {option, height: 300, controls: [{name: 'figure', label: 'Of each tier',
      choices: [['greatest', 'its busiest link'], ['mean', 'the mean of its links']]}]};
  };

  const queues = (tables, look, state) => {
    const all = rows(tables.queues);
    const figure = state.figure ?? 'queue_max_bytes';
    const text = figure === 'paused_ps' ? format.time : format.bytes;
    const option = overBins(look, tables.queues, distinct(all.map((row) => row.tier)),
      (tier) => all.filter((row) => row.tier === tier).map((row) => [row.begin_ps, row[figure] ?? 0]), text);
    const hasPauses = all.some((row) => row.paused_ps > 0);
    return {option, height: 300, controls: hasPauses ? [{name: 'figure', label: 'Show',
      choices: [['queue_max_bytes', 'the longest queue'], ['paused_ps', 'pauses']]}] : []};
  };

  const marks = (tables, look) => {
    const all = rows(tables.marks);
    const names = {ecn_marked: 'ECN marks', cnp: 'CNPs', nacks: 'NACKs', timeouts: 'time-outs', retransmitted_packets: 'sent again'};
    const present = Object.keys(names).filter((name) => all.some((row) => row[name] > 0));
    const option = overBins(look, tables.marks, present.map((name) => names[name]),
      (group) => all.map((row) => [row.begin_ps, row[present.find((name) => names[name] === group)]]), format.count);
    return {option, height: 280};
  };

  // ---- Faults and causes

  const faults = (tables, look) => {
    const all = rows(tables.faults);
    const end = look.run.simulated_time_ps;
    const dots = [['detected_ps', 'noticed', 'circle'], ['first_retransmission_ps', 'first sent again', 'triangle'],
      ['recovered_ps', 'traffic flowed again', 'diamond']];
    const option = {
      ...base(look),
      grid: {left: 8, right: 28, top: 40, bottom: 8, containLabel: true},
      xAxis: timeAxis(look, {min: 0, max: end, axisLabel: {showMaxLabel: false}}),
      yAxis: axis(look, {type: 'category', data: all.map((row) => row.name), inverse: true, splitLine: {show: false},
        axisLabel: {interval: 0, color: look.ink, width: look.isNarrow ? 90 : 200, overflow: 'truncate'}}),
      series: [
        {name: 'held', type: 'custom', color: look.mark, encode: {x: [1, 2], y: 0},
          data: all.map((row, i) => [i, row.from_ps, row.until_ps ?? end]),
          renderItem: (params, api) => {
            const [x1, y] = api.coord([api.value(1), api.value(0)]);
            const x2 = api.coord([api.value(2), api.value(0)])[0];
            return {type: 'rect', shape: {x: x1, y: y - 7, width: Math.max(2, x2 - x1), height: 14, r: 2},
              style: {fill: look.mark, opacity: 0.55}};
          }},
        ...dots.map(([column, name, symbol], i) => ({
          name, type: 'scatter', symbol, symbolSize: 11, color: look.palette[[0, 2, 3][i]],
          itemStyle: {borderColor: look.ground, borderWidth: 1},
          data: all.flatMap((row, at) => (row[column] === null ? [] : [{value: [Math.min(row[column], end), at], row}]))})),
      ].filter((series) => series.data.length > 0),
    };
    option.tooltip.formatter = ({seriesName, dataIndex, data}) => {
      const row = data.row ?? all[dataIndex];
      return lines(`${row.name}: ${format.words(row.kind)}`, [
        ['on', row.target], ['from', format.time(row.from_ps)],
        ['until', row.until_ps === null ? 'the end' : format.time(row.until_ps)],
        [seriesName === 'held' ? '' : seriesName, data.row ? format.time(data.value[0]) : ''],
        ['began', row.begins > 1 ? `${row.begins} times` : ''],
        ['packets lost', format.count(row.dropped_packets)], ['collectives hit', format.count(row.collectives_hit)],
        ['ranks hit', format.count(row.ranks_hit)], ['bytes of those collectives', format.bytes(row.bytes_hit)]]);
    };
    const facts = all.slice(0, 12).map((row) => [row.name,
      `${format.words(row.kind)} on ${row.target}${row.begins > 1 ? `, ${format.count(row.begins)} times in that span` : ''}; lost ${format.count(row.dropped_packets)} packets, ` +
      `hit ${format.count(row.collectives_hit)} of ${format.count(look.collectives)} collectives (${format.bytes(row.bytes_hit)}) ` +
      `and ${format.count(row.ranks_hit)} of ${format.count(look.run.gpus)} ranks`]);
    return {option, height: 70 + 30 * all.length, facts};
  };

  const causeColors = (look) => ({'time-outs': look.palette[1], 'sent again': look.palette[4], 'slow or late peers': look.palette[0],
    queueing: look.palette[2], 'longer ways': look.palette[3], other: look.soft});

  const addedTime = (tables, look) => {
    const all = rows(tables.added_time);
    const kinds = distinct(all.map((row) => row.kind));
    const causes = distinct(all.map((row) => row.cause)).filter((cause) => all.some((row) => row.cause === cause && row.added_ps !== 0));
    const option = stackedBars(look, kinds, causes.map((cause) => ({
      name: cause, color: causeColors(look)[cause],
      values: kinds.map((kind) => all.find((row) => row.kind === kind && row.cause === cause)?.added_ps ?? 0),
    })), format.time);
    return {option, height: 76 + 40 * kinds.length, width: 'half'};
  };

  // Each part begins where the one before it ended.
  const slowest = (tables, look) => {
    const all = rows(tables.slowest);
    let sum = 0;
    const bars = all.map((row) => {
      if (row.part === 'without faults' || row.part === 'in this run') {
        sum = row.part === 'without faults' ? row.time_ps : sum;
        return {...row, from: 0, to: row.time_ps, color: look.soft};
      }
      const bar = {...row, from: sum, to: sum + row.time_ps, color: causeColors(look)[row.part] ?? look.soft};
      sum = bar.to;
      return bar;
    });
    const option = {
      ...base(look),
      legend: undefined,
      grid: {left: 8, right: 70, top: 8, bottom: 8, containLabel: true},
      xAxis: timeAxis(look, {}),
      yAxis: axis(look, {type: 'category', data: bars.map((bar) => bar.part), inverse: true, splitLine: {show: false},
        axisLabel: {interval: 0, color: look.ink}}),
      series: [{
        name: 'parts', type: 'custom', encode: {x: [1, 2], y: 0}, data: bars.map((bar, i) => [i, bar.from, bar.to]),
        renderItem: (params, api) => {
          const bar = bars[params.dataIndex];
          const [a, y] = api.coord([bar.from, params.dataIndex]);
          const b = api.coord([bar.to, params.dataIndex])[0];
          return {type: 'group', children: [
            {type: 'rect', shape: {x: Math.min(a, b), y: y - 8, width: Math.max(2, Math.abs(b - a)), height: 16, r: 2},
              style: {fill: bar.color}},
            {type: 'text', style: {text: format.time(bar.time_ps), x: Math.max(a, b) + 6, y, fill: look.ink,
              verticalAlign: 'middle', font: `12px ${look.font}`}}]};
        },
      }],
    };
    option.tooltip.formatter = ({dataIndex}) => lines(bars[dataIndex].part, [['', format.time(bars[dataIndex].time_ps)]]);
    return {option, height: 40 + 32 * bars.length, width: 'half'};
  };

  const culprit = (row) => (row.source_rank === row.destination_rank
    ? `rank ${row.source_rank}, slow or late` : `rank ${row.source_rank} to rank ${row.destination_rank}`);

  const waits = (tables, look) => {
    const all = rows(tables.waits);
    const option = stackedBars(look, all.map(culprit), [{name: 'waited', color: look.palette[0],
      values: all.map((row) => row.waited_ps)}], format.time, {
      tooltip: (items) => {
        const row = all[items[0].dataIndex];
        return lines(culprit(row), [['ranks that waited', format.count(row.ranks_waiting)],
          ['calls', format.count(row.calls)], ['waited in all', format.time(row.waited_ps)]]);
      }});
    const chain = rows(tables.chain).map((row) => [`rank ${row.rank}`, `waited ${format.time(row.waited_ps)} for ${culprit(row)}`]);
    const last = rows(tables.chain).at(-1);
    if (last) chain.push([culprit(last), 'where it began']);
    return {option, height: 30 + 22 * all.length, chain};
  };

  Object.assign(drawings, {
    iteration_pairs: iterations, tiers, links, bursts, fabric, utilization, queues, marks, faults,
    added_time: addedTime, slowest, waits,
  });
})();
