/* SPDX-License-Identifier: Apache-2.0
 * Charts as plain SVG: scales, axes, lines, points, bars, and a tooltip. No dependency.
 * A chart is made by plot(box, options); its size is in user units and scales with the page. */
'use strict';
const NS = 'http://www.w3.org/2000/svg';
const css = name => 'var(--' + name + ')';

function el(parent, tag, attributes, text) {
    const node = tag === 'svg' || parent.namespaceURI === NS
        ? document.createElementNS(NS, tag) : document.createElement(tag);
    for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
}

/* Four significant digits, without an exponent where a person would not write one. */
function num(x) {
    if (x === null || x === undefined || !isFinite(x)) return '–';
    const a = Math.abs(x);
    if (a !== 0 && (a < 1e-3 || a >= 1e7)) return x.toExponential(2);
    return String(+x.toPrecision(a >= 1000 ? 6 : 4));
}
const pct = x => x === null || x === undefined || !isFinite(x) ? '–' : (100 * x).toFixed(2) + ' %';
const day = ns => new Date(ns / 1e6).toISOString().slice(0, 10);

/* Width in user units that makes a chart's text as large as the page's, down to a telephone. */
const room = box => Math.max(300, Math.min(1080, box.clientWidth - 36));

function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const v of values) {
        if (v !== null && isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    }
    if (low > high) return [0, 1];
    if (low === high) return [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05];
    return [low, high];
}

function ticks(low, high, count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw) || raw;
    const out = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) out.push(i * step);
    return out;
}

/* Maps [low, high] to [a, b]; log: by the logarithm. */
function scale(low, high, a, b, log) {
    const f = log ? Math.log : x => x, l = f(low), h = f(high);
    const map = v => a + (f(v) - l) / (h - l || 1) * (b - a);
    map.invert = p => { const v = l + (p - a) / (b - a) * (h - l); return log ? Math.exp(v) : v; };
    map.ticks = count => {
        if (!log) return ticks(low, high, count);
        const out = [];
        for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * (1 + 1e-9); e++) out.push(10 ** e);
        return out.length > 1 ? out : [low, high];
    };
    return map;
}

/* A chart with axes. options: width, height, x: [low, high], y: [low, high], xlog, ylog, xlabel,
 * ylabel, yformat, label (what it shows, for screen readers). Returns {svg, x, y, left, ...}. */
function plot(box, o) {
    const W = o.width || room(box), H = o.height || 280, L = 62, R = 14, T = 12, B = 34;
    const svg = el(box, 'svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': o.label});
    const x = scale(o.x[0], o.x[1], L, W - R, o.xlog), y = scale(o.y[0], o.y[1], H - B, T, o.ylog);
    const format = o.yformat || num, xformat = o.xformat || num;
    for (const v of y.ticks(Math.max(2, Math.floor(H / 60)))) {
        el(svg, 'path', {class: 'axis', d: `M${L} ${y(v)}H${W - R}`});
        el(svg, 'text', {x: L - 6, y: y(v) + 4, 'text-anchor': 'end'}, format(v));
    }
    for (const v of x.ticks(Math.max(2, Math.floor(W / 130)))) {
        el(svg, 'path', {class: 'axis', d: `M${x(v)} ${H - B}v4`});
        el(svg, 'text', {x: x(v), y: H - B + 16, 'text-anchor': 'middle'}, xformat(v));
    }
    el(svg, 'path', {class: 'axis', d: `M${L} ${T}V${H - B}H${W - R}`});
    if (o.xlabel) el(svg, 'text', {x: (L + W - R) / 2, y: H - 3, 'text-anchor': 'middle'}, o.xlabel);
    if (o.ylabel) {
        el(svg, 'text', {x: 12, y: (T + H - B) / 2, 'text-anchor': 'middle',
            transform: `rotate(-90 12 ${(T + H - B) / 2})`}, o.ylabel);
    }
    return {svg, x, y, left: L, right: W - R, top: T, bottom: H - B};
}

/* A line through points [[x, y], ...]; a null y breaks it. */
function line(chart, points, colour, more) {
    let d = '', pen = false;
    for (const [px, py] of points) {
        if (py === null || !isFinite(py)) { pen = false; continue; }
        d += (pen ? 'L' : 'M') + chart.x(px).toFixed(1) + ' ' + chart.y(py).toFixed(1);
        pen = true;
    }
    return el(chart.svg, 'path', Object.assign({d, fill: 'none', stroke: css(colour),
        'stroke-width': 1.8, 'stroke-linejoin': 'round'}, more));
}

function band(chart, xs, low, high, colour) {
    const up = xs.map((x, i) => [x, high[i]]), down = xs.map((x, i) => [x, low[i]]).reverse();
    const d = up.concat(down).map(([x, y]) => chart.x(x).toFixed(1) + ' ' + chart.y(y).toFixed(1));
    el(chart.svg, 'path', {d: 'M' + d.join('L') + 'Z', fill: css(colour), opacity: 0.15});
}

function tip(node, text) {
    const box = document.getElementById('tip');
    const show = event => {
        box.textContent = typeof text === 'function' ? text() : text;
        box.hidden = false;
        const w = box.offsetWidth;
        box.style.left = Math.max(4, Math.min(event.clientX + 12, window.innerWidth - w - 8)) + 'px';
        box.style.top = (event.clientY + 14) + 'px';
    };
    node.addEventListener('pointermove', show);
    node.addEventListener('pointerleave', () => { box.hidden = true; });
}

function legend(box, entries) {
    const list = el(box, 'div', {class: 'legend'});
    for (const [name, colour] of entries) {
        const item = el(list, 'span');
        el(item, 'i', {style: 'background:' + css(colour)});
        item.appendChild(document.createTextNode(name));
    }
}

/* rows: arrays of texts; cls(row index) a class of the row. */
function table(box, head, rows, cls, leftColumns) {
    const t = el(el(box, 'div', {class: 'wide'}), 'table');
    const left = new Set(leftColumns || [0]);
    const tr = el(el(t, 'thead'), 'tr');
    head.forEach((h, i) => el(tr, 'th', left.has(i) ? {class: 'left', scope: 'col'} : {scope: 'col'}, h));
    const body = el(t, 'tbody');
    rows.forEach((row, r) => {
        const line = el(body, 'tr', cls && cls(r) ? {class: cls(r)} : {});
        row.forEach((cell, i) => el(line, 'td', left.has(i) ? {class: 'left'} : {}, cell));
    });
    return t;
}
