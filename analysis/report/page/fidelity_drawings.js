// SPDX-License-Identifier: GPL-2.0-only
// Drawings of `railyard fidelity`: errors of kinds of machines, and of sizes.
'use strict';

(() => {
  const {rows, lines, axis, base, distinct, symbols} = drawings.parts;

  const percent = (share) => (share === null || share === undefined ? '' : `${(100 * share).toFixed(1)} %`);
  const choice = (name, label, values) => ({name, label, choices: values.map((value) => [value, value])});
  const all = 'all';

  // The median over cells, weighted by their rows.
  const weighted = (cells) => {
    const sorted = [...cells].sort((a, b) => a.median_abs_error - b.median_abs_error);
    const half = sorted.reduce((sum, cell) => sum + cell.rows, 0) / 2;
    let sum = 0;
    for (const cell of sorted) {
      sum += cell.rows;
      if (sum >= half) return cell.median_abs_error;
    }
    return null;
  };
  const medianOf = (values) => {
    const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
    return sorted.length === 0 ? null : sorted[Math.floor(sorted.length / 2)];
  };

  const fidelityMachines = (tables, look, state) => {
    const table = tables.fidelity_machines;
    const simulators = distinct(table.simulator);
    const classes = [all, ...distinct(rows(table).sort((a, b) => a.bytes_min - b.bytes_min).map((row) => row.sizes))];
    const protocols = [all, ...distinct(table.protocol).sort()];
    const simulator = state.simulator ?? simulators[0];
    const sizes = state.sizes ?? all;
    const protocol = state.protocol ?? all;
    const chosen = rows(table).filter((row) => row.simulator === simulator && (sizes === all || row.sizes === sizes) &&
      (protocol === all || row.protocol === protocol));
    const machines = distinct(chosen.map((row) => row.machine)).reverse();
    const collectives = distinct(chosen.map((row) => row.collective)).sort();
    const data = [];
    machines.forEach((machine, y) => collectives.forEach((collective, x) => {
      const cells = chosen.filter((row) => row.machine === machine && row.collective === collective);
      if (cells.length === 0) return;
      const error = weighted(cells);
      data.push({value: [x, y, Math.min(100 * error, 50)], error, cells, spread: medianOf(cells.map((cell) => cell.spread))});
    }));
    const option = {
      ...base(look), legend: undefined,
      grid: {left: 30, right: 16, top: 8, bottom: 84, containLabel: true},
      xAxis: axis(look, {type: 'category', data: collectives, splitLine: {show: false}}),
      yAxis: axis(look, {type: 'category', data: machines, splitLine: {show: false}}),
      visualMap: {
        type: 'continuous', min: 0, max: 50, dimension: 2, calculable: true, orient: 'horizontal', left: 'center',
        bottom: 0, itemWidth: 12, itemHeight: 180, inRange: {color: look.ramp}, textStyle: {color: look.soft},
        formatter: (value) => `${Math.round(value)} %`,
      },
      series: [{
        name: 'Median |error|', type: 'heatmap', itemStyle: {borderWidth: 1, borderColor: look.ground}, data,
        label: {show: true, formatter: ({data: cell}) =>
          percent(cell.error) + (cell.spread === null ? '' : `\n± ${percent(cell.spread)}`)},
      }],
    };
    option.tooltip.formatter = ({data: cell}) => lines(cell.cells[0].machine, [
      ['collective', cell.cells[0].collective], ['median |error|', percent(cell.error)],
      ['spread between tables', percent(cell.spread)],
      ...cell.cells.map((row) => [`${row.protocol}, ${row.sizes}`,
        `${percent(row.median_abs_error)}, p90 ${percent(row.p90_abs_error)} of ${row.rows}`])]);
    return {
      option, height: 130 + 40 * machines.length,
      controls: [
        ...(simulators.length > 1 ? [choice('simulator', 'Simulator', simulators)] : []),
        choice('sizes', 'Sizes', classes), choice('protocol', 'Protocol', protocols)],
    };
  };

  const fidelitySizes = (tables, look, state) => {
    const table = tables.fidelity_sizes;
    const machines = distinct(table.machine);
    const machine = state.machine ?? machines[0];
    const ofMachine = rows(table).filter((row) => row.machine === machine);
    const collectives = distinct(ofMachine.map((row) => row.collective)).sort();
    const collective = collectives.includes(state.collective) ? state.collective : collectives[0];
    const shown = ofMachine.filter((row) => row.collective === collective);
    const names = distinct(shown.map((row) => `${row.simulator} ${row.protocol}`));
    const series = names.map((name, i) => ({
      name, type: 'scatter', symbol: symbols[i % symbols.length], symbolSize: 8, color: look.palette[i % look.palette.length],
      data: shown.filter((row) => `${row.simulator} ${row.protocol}` === name)
        .map((row) => ({value: [row.bytes, 100 * row.error], row})),
    }));
    const spreads = [...new Map(shown.filter((row) => row.spread !== null).map((row) => [row.bytes, row.spread]))]
      .sort((a, b) => a[0] - b[0]);
    for (const side of [1, -1]) {
      if (spreads.length > 1) {
        series.push({
          name: 'spread', type: 'line', silent: true, symbol: 'none', color: look.faint, lineStyle: {width: 1, type: 'dashed'},
          data: spreads.map(([bytes, spread]) => [bytes, side * 100 * spread]),
        });
      }
    }
    const option = {
      ...base(look), series,
      grid: {left: 40, right: 16, top: 34, bottom: 46, containLabel: true},
      xAxis: axis(look, {type: 'log', logBase: 2, name: 'bytes', nameLocation: 'middle', nameGap: 26,
        axisLabel: {formatter: (value) => format.bytes(value)}}),
      yAxis: axis(look, {type: 'value', axisLabel: {formatter: (value) => `${value} %`}}),
    };
    option.tooltip.formatter = ({data: {row}}) => (row === undefined ? '' : lines(row.source, [
      ['bytes', row.bytes], ['simulator', row.simulator], ['protocol', row.protocol], ['measured', `${row.measured_us} us`],
      ['simulated', `${row.simulated_us.toFixed(1)} us`], ['error', percent(row.error)],
      ['spread between tables', percent(row.spread)]]));
    return {
      option, height: 380,
      controls: [choice('machine', 'Machine', machines), choice('collective', 'Collective', collectives)],
    };
  };

  Object.assign(drawings, {fidelity_machines: fidelityMachines, fidelity_sizes: fidelitySizes});
})();
