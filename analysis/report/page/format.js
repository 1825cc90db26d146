// SPDX-License-Identifier: GPL-2.0-only
// Figures as the program prints them: three significant digits, and a unit.
'use strict';

const format = (() => {
  const digits = (value) => {
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString('en-US');
    return String(Number(value.toPrecision(3)));
  };

  const scaled = (value, units, step) => {
    let at = 0;
    let size = value;
    while (at + 1 < units.length && Math.abs(size) >= step) {
      size /= step;
      at += 1;
    }
    return `${digits(size)} ${units[at]}`;
  };

  const timeUnits = [['s', 1e12], ['ms', 1e9], ['us', 1e6], ['ns', 1e3], ['ps', 1]];
  const time = (ps) => {
    if (ps === 0) return '0 s';
    const [unit, size] = timeUnits.find(([, least]) => Math.abs(ps) >= least) ?? timeUnits[4];
    return `${digits(ps / size)} ${unit}`;
  };

  const bytes = (value) => scaled(value, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'], 1024);
  const rate = (bps) => scaled(bps, ['b/s', 'Kb/s', 'Mb/s', 'Gb/s', 'Tb/s'], 1000);
  const count = (value) => value.toLocaleString('en-US', {maximumFractionDigits: 3});
  const ratio = (value) => (value >= 1e7 ? value.toExponential(2) : digits(value));
  // An axis has values that lie close together.
  const tick = (value) => (Math.abs(value) >= 1000 ? ratio(value) : String(Number(value.toPrecision(6))));
  const share = (value) => `${Number((value * 100).toPrecision(3))} %`;
  const words = (name) => name.toLowerCase().replaceAll('_', ' ');

  // A cell of a table, by the unit in its column's name.
  const cell = (column, value) => {
    if (value === null || value === undefined) return '–';
    if (typeof value === 'string') return value;
    if (column.endsWith('_ps')) return time(value);
    if (column.endsWith('_bytes') || column === 'bytes') return bytes(value);
    if (column.endsWith('_bps')) return rate(value);
    if (column === 'share' || column === 'utilization' || column === 'duty') return share(value);
    return Number.isInteger(value) ? count(value) : ratio(value);
  };

  const html = (text) =>
    String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  return {time, bytes, rate, count, ratio, share, words, cell, html};
})();
