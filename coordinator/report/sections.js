/* SPDX-License-Identifier: Apache-2.0
 * The sections of the report, in reading order. D is the data that report_data.c wrote; a section
 * whose data is absent says so or is left out. */
const D = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
const first = D.objective[0];
const valueName = first.metric + (first.aggregate === 'stitched' ? '' : ' (' + first.aggregate + ')');
const stateColour = {COMPLETE: 'c1', PRUNED: 'c5', FAILED: 'bad'};

function section(title, text) {
    const box = el(page, 'section');
    el(box, 'h2', {}, title);
    if (text) el(box, 'p', {class: 'dim'}, text);
    return box;
}

function head() {
    const s = D.study, p = D.progress;
    el(page, 'h1', {}, s.name);
    el(page, 'p', {class: 'dim'}, `${s.data_path.split('/').pop()}, ${day(s.first_bar_ns)} to ` +
        `${day(s.last_bar_ns)}, ${s.bars.toLocaleString('en')} bars; ${D.folds.length} walk-forward ` +
        `folds; study ${s.state}${s.reason ? ' (' + s.reason + ')' : ''}; made by hyperopt ${s.program}`);
    const cards = el(page, 'div', {class: 'cards'});
    const card = (name, value, note) => {
        const c = el(cards, 'div', {class: 'card'});
        el(c, 'span', {class: 'dim'}, name);
        el(c, 'b', {}, value);
        if (note) el(c, 'span', {class: 'dim'}, note);
    };
    const best = D.leaderboard[0], hold = D.baselines.find(b => b.policy === 'buy_and_hold');
    card('best ' + first.metric, best ? num(best.value) : '–', best ? 'trial ' + best.trial : 'no trial finished');
    if (hold) card('buy-and-hold ' + first.metric, num(hold[first.metric] ?? hold.sharpe), 'same bars, same costs');
    card('finished', String(p.complete), `${p.pruned} pruned, ${p.failed} failed`);
    if (D.overfit.trials) card('deflated Sharpe', num(D.overfit.dsr), `${D.overfit.trials} configurations tried`);
    if (typeof D.overfit.pbo === 'number') card('overfitting (PBO)', pct(D.overfit.pbo));
    card('holdout looks', String(D.looks), D.looks ? '' : 'not looked at yet');
    if (D.sentence) el(page, 'p', {}, D.sentence);
}

function leaderboard() {
    const box = section('Leaderboard', 'Joined out-of-sample series of all folds, after costs; means over ' +
        'seeds. ' + D.conventions);
    const same = first.metric === 'sharpe'; /* then the value is the Sharpe ratio already */
    const cells = b => [num(b.value), ...(same ? [] : [num(b.sharpe)]), pct(b.total_return), pct(b.max_drawdown), num(b.trades)];
    const rows = D.leaderboard.map(b => [String(b.trial), ...cells(b), b.feasible ? '' : 'infeasible']);
    const bases = D.baselines.map(b => [b.policy.replaceAll('_', '-'), ...cells(b), 'baseline']);
    table(box, ['trial', valueName, ...(same ? [] : ['sharpe']), 'total return', 'max drawdown', 'trades', ''],
        rows.concat(bases), r => r >= rows.length ? 'base' : '');
}

function history() {
    const t = D.trials;
    if (!t.number.length) return;
    const box = section('Objective over trials', t.total > t.number.length ?
        `${t.number.length} of ${t.total} trials are drawn; the line of the best so far is exact.` : '');
    const finite = t.value.filter(v => v !== null).sort((a, b) => a - b);
    const at = q => finite[Math.min(finite.length - 1, Math.floor(q * finite.length))];
    const ys = extent(finite.length > 40 ? [at(0.02), at(0.9999), ...t.best.map(b => b[1])] : finite);
    const pad = (ys[1] - ys[0]) * 0.05;
    const c = plot(box, {x: [0, Math.max(1, t.total - 1)], y: [ys[0] - pad, ys[1] + pad],
        xlabel: 'trial', ylabel: valueName, label: 'objective value of each trial'});
    t.number.forEach((n, i) => {
        const v = t.value[i], state = t.state[i];
        const y = v === null ? c.bottom : Math.max(c.top, Math.min(c.bottom, c.y(v)));
        const dot = el(c.svg, 'circle', {cx: c.x(n).toFixed(1), cy: y.toFixed(1), r: 3,
            fill: css(stateColour[state] || 'dim'), opacity: 0.65});
        tip(dot, `trial ${n}\n${first.metric} ${num(v)}\n${state.toLowerCase()}`);
    });
    const steps = [];
    t.best.forEach(([n, v], i) => { if (i) steps.push([n, t.best[i - 1][1]]); steps.push([n, v]); });
    if (steps.length) {
        steps.push([Math.max(1, t.total - 1), steps[steps.length - 1][1]]);
        line(c, steps, 'c2', {class: 'best'});
    }
    legend(box, [['complete', 'c1'], ['pruned', 'c5'], ['failed or undefined (on the axis)', 'bad'], ['best so far', 'c2']]);
}

/* Position of a value on the axis of a parameter, in [0, 1]; null when inactive. */
function place(param, value) {
    if (value === null) return null;
    if (param.kind === 'choice') return (value + 0.5) / param.choices.length;
    if (param.low === param.high) return 0.5;
    const f = param.log ? Math.log : x => x;
    return (f(value) - f(param.low)) / (f(param.high) - f(param.low));
}
const shown = (param, value) => value === null ? 'inactive'
    : param.kind === 'choice' ? String(param.choices[value]) : num(value);

function parallel() {
    const P = D.params.length;
    if (!P || !D.sample.trial.length) return;
    const box = section('Parallel coordinates', 'One line a trial, stronger colour for better. Drag along an axis ' +
        'to keep only the trials that pass there; click an axis to clear it.');
    const W = Math.max(room(box), 130 * (P + 1)), H = 330, T = 40, B = H - 34;
    const svg = el(el(box, 'div', {class: 'wide'}), 'svg', {viewBox: `0 0 ${W} ${H}`, role: 'img',
        style: `min-width:${Math.min(W, 130 * (P + 1))}px`, 'aria-label': 'parameters of the trials and their value'});
    const values = D.sample.value, [low, high] = extent(values);
    const axes = D.params.map(p => ({name: p.name, at: i => place(p, D.sample.row[i][p.index]), ends: p.kind === 'choice'
        ? p.choices.map((c, k) => [(k + 0.5) / p.choices.length, String(c)]) : [[0, num(p.low)], [1, num(p.high)]]}));
    axes.push({name: valueName, at: i => (values[i] - low) / (high - low), ends: [[0, num(low)], [1, num(high)]]});
    const X = a => 60 + a * (W - 120) / (axes.length - 1 || 1), Y = f => B - f * (B - T);
    const order = values.map((v, i) => i).sort((a, b) => first.direction * (values[a] - values[b]));
    const lines = order.map((i, rank) => {
        let d = '', pen = false;
        axes.forEach((axis, a) => {
            const f = axis.at(i);
            if (f === null) { pen = false; return; }
            d += (pen ? 'L' : 'M') + X(a).toFixed(1) + ' ' + Y(f).toFixed(1);
            pen = true;
        });
        const q = order.length > 1 ? rank / (order.length - 1) : 1;
        const path = el(svg, 'path', {d, fill: 'none', stroke: css(q > 0.9 ? 'c2' : 'c1'), 'stroke-width': q > 0.9 ? 1.6 : 1,
            opacity: (0.06 + 0.6 * q * q).toFixed(2), class: 'trial'});
        tip(path, () => `trial ${D.sample.trial[i]}: ${num(values[i])}\n` +
            D.params.map(p => `${p.name} = ${shown(p, D.sample.row[i][p.index])}`).join('\n'));
        return {i, path};
    });
    const brush = axes.map(() => null);
    const apply = () => lines.forEach(({i, path}) => {
        const keep = brush.every((b, a) => !b || (f => f !== null && f >= b[0] && f <= b[1])(axes[a].at(i)));
        path.style.display = keep ? '' : 'none';
    });
    axes.forEach((axis, a) => {
        el(svg, 'path', {class: 'axis', d: `M${X(a)} ${T}V${B}`});
        el(svg, 'text', {class: 'name', x: X(a), y: a % 2 ? 12 : 26, 'text-anchor': 'middle'}, axis.name);
        for (const [f, text] of axis.ends) el(svg, 'text', {x: X(a) + 4, y: Y(f) + 4}, text);
        const mark = el(svg, 'rect', {x: X(a) - 6, width: 12, y: T, height: 0, fill: css('c3'), opacity: 0.35});
        const zone = el(svg, 'rect', {x: X(a) - 10, width: 20, y: T, height: B - T, fill: 'transparent', class: 'brush',
            style: 'cursor:ns-resize;touch-action:none'});
        const where = e => {
            const box = svg.getBoundingClientRect();
            return Math.max(0, Math.min(1, (B - (e.clientY - box.top) * H / box.height) / (B - T)));
        };
        let from = null;
        zone.addEventListener('pointerdown', e => { from = where(e); zone.setPointerCapture(e.pointerId); });
        zone.addEventListener('pointermove', e => {
            if (from === null) return;
            const to = where(e);
            brush[a] = [Math.min(from, to), Math.max(from, to)];
            mark.setAttribute('y', Y(brush[a][1]));
            mark.setAttribute('height', Y(brush[a][0]) - Y(brush[a][1]));
            apply();
        });
        zone.addEventListener('pointerup', e => {
            if (from !== null && Math.abs(where(e) - from) < 0.01) {
                brush[a] = null;
                mark.setAttribute('height', 0);
                apply();
            }
            from = null;
        });
    });
}

function importance() {
    if (!D.params.length || !D.sample.trial.length) return;
    const rho = new Map(D.importance.filter(i => i.method === 'spearman').map(i => [i.param, i.value]));
    const box = section('What matters', D.importance.length ? 'Bars: PED-ANOVA, the share of what separates the best tenth of the ' +
        'trials from the rest. ρ: Spearman\'s rank correlation with the objective. Below, each parameter against it.'
        : 'Each parameter against the objective.');
    const anova = D.importance.filter(i => i.method === 'ped_anova').sort((a, b) => b.value - a.value);
    if (anova.length) {
        const top = Math.max(...anova.map(i => i.value), 1e-12), H = 24 * anova.length + 8, W = room(box);
        const left = Math.min(236, W * 0.45), most = W - left - 150;
        const svg = el(box, 'svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'parameter importance'});
        anova.forEach((item, r) => {
            el(svg, 'text', {class: 'name', x: left, y: 24 * r + 18, 'text-anchor': 'end'}, item.param);
            el(svg, 'rect', {x: left + 8, y: 24 * r + 6, height: 14, width: Math.max(1, most * item.value / top), fill: css('c1'), rx: 2});
            el(svg, 'text', {x: left + 14 + most * item.value / top, y: 24 * r + 18}, pct(item.value) +
                (rho.has(item.param) ? `, ρ ${num(rho.get(item.param))}` : ''));
        });
    }
    const grid = el(box, 'div', {class: 'grid2'}), ys = extent(D.sample.value);
    for (const p of D.params) {
        const cell = el(grid, 'div'), isChoice = p.kind === 'choice';
        const c = plot(cell, {width: 380, height: 220, xlog: p.log, x: isChoice ? [-0.5, p.choices.length - 0.5]
            : p.low === p.high ? [p.low - 1, p.high + 1] : [p.low, p.high], y: ys, xlabel: p.name, ylabel: first.metric,
            xformat: v => isChoice ? (Number.isInteger(v) ? String(p.choices[v] ?? '') : '') : num(v), label: p.name});
        D.sample.trial.forEach((n, i) => {
            const v = D.sample.row[i][p.index];
            if (v === null) return;
            const jitter = isChoice ? ((n * 0.618034) % 1 - 0.5) * 0.5 : 0;
            const dot = el(c.svg, 'circle', {cx: c.x(v + jitter).toFixed(1), cy: c.y(D.sample.value[i]).toFixed(1), r: 2.6,
                fill: css('c1'), opacity: 0.55});
            tip(dot, `trial ${n}\n${p.name} = ${shown(p, v)}\n${first.metric} ${num(D.sample.value[i])}`);
        });
    }
}

function curves() {
    if (!D.curves.length) return;
    const box = section('Learning curves', `${first.metric} on the validation windows, mean over folds and seeds, of the best trials.`);
    const all = D.curves.flatMap(c => c.value);
    const c = plot(box, {x: extent(D.curves.flatMap(c => c.step)), y: extent(all), xlabel: 'epoch',
        ylabel: 'validation ' + first.metric, label: 'learning curves'});
    D.curves.forEach((curve, i) => tip(line(c, curve.step.map((e, k) => [e, curve.value[k]]), i ? 'c1' : 'c2',
        {opacity: i ? 0.5 : 1, 'stroke-width': i ? 1.3 : 2.4}), 'trial ' + curve.trial));
    legend(box, [['trial ' + D.curves[0].trial + ' (best)', 'c2'], ['the next ones', 'c1']]);
}

const grow = returns => { let e = 1; return [1, ...returns.map(r => e *= 1 + r)]; };
const draw = equity => { let top = -Infinity; return equity.map(e => e / (top = Math.max(top, e)) - 1); };

function equity() {
    if (!D.equity.length) return;
    const box = section('Equity by fold', `Best trial${D.seeds > 1 ? ' (mean of its seeds)' : ''} on each test window, ` +
        'which it never trained on; growth of 1 a session, drawdown below it.');
    legend(box, [['trial ' + D.leaderboard[0].trial, 'c2'], ['buy-and-hold', 'c1'],
        ...(D.equity[0].random_low ? [['random policies, 5 to 95 %', 'dim']] : [])]);
    const grid = el(box, 'div', {class: 'grid2'});
    for (const fold of D.equity) {
        const cell = el(grid, 'div'), best = grow(fold.best), hold = fold.buy_and_hold ? grow(fold.buy_and_hold) : [];
        el(cell, 'p', {class: 'dim'}, `fold ${fold.fold}: ${day(fold.begin_ns)} to ${day(fold.end_ns)}`);
        const range = extent([...best, ...hold, ...(fold.random_low || []), ...(fold.random_high || [])]);
        const c = plot(cell, {width: 380, height: 200, x: [0, best.length - 1], y: range, ylabel: 'equity',
            label: 'equity of fold ' + fold.fold});
        if (fold.random_low) band(c, fold.random_low.map((_, i) => i), fold.random_low, fold.random_high, 'dim');
        line(c, hold.map((e, i) => [i, e]), 'c1');
        line(c, best.map((e, i) => [i, e]), 'c2', {'stroke-width': 2.2});
        const d = draw(best), dh = draw(hold);
        const low = plot(cell, {width: 380, height: 120, x: [0, best.length - 1], y: [Math.min(...d, ...dh, -1e-9), 0],
            ylabel: 'drawdown', yformat: v => (100 * v).toPrecision(2) + '%', xlabel: 'session', label: 'drawdown of fold ' + fold.fold});
        line(low, dh.map((e, i) => [i, e]), 'c1');
        line(low, d.map((e, i) => [i, e]), 'c2');
    }
}

function costs() {
    if (!D.costs || !D.costs.length) return;
    const box = section('Cost sensitivity', `The decisions of trial ${D.leaderboard[0].trial} replayed at multiples of the study's costs.`);
    const points = D.costs.filter(c => c.total_return !== null).map(c => [c.factor, c.total_return]);
    const c = plot(box, {x: [0, Math.max(...D.costs.map(c => c.factor))], y: extent([0, ...points.map(p => p[1])]), height: 220,
        xlabel: 'multiple of the costs', ylabel: 'total return', yformat: v => (100 * v).toPrecision(2) + '%', label: 'cost sensitivity'});
    line(c, points, 'c2', {'stroke-width': 2.2});
    table(box, ['costs', 'total return', 'sharpe', 'max drawdown', 'trades'], D.costs.map(c =>
        ['x ' + num(c.factor), pct(c.total_return), num(c.sharpe), pct(c.max_drawdown), num(c.trades)]));
}

function trades() {
    if (!D.trades || !D.trades.length || !D.trade_total) return;
    const reasons = ['none', 'signal', 'stop', 'profit', 'time', 'session', 'end'];
    const when = s => new Date(s * 1000).toISOString().slice(0, 16).replace('T', ' ');
    const box = section('Trades', `Trial ${D.leaderboard[0].trial}, its first seed: ` + (D.trade_total > D.trades.length ?
        `the first ${D.trades.length} of ${D.trade_total} trades.` : `all ${D.trade_total} trades.`) + ' Times are UTC.');
    const fold = el(box, 'details');
    el(fold, 'summary', {}, 'list');
    table(fold, ['fold', 'entry', 'exit', 'side', 'quantity', 'entry price', 'exit price', 'left by', 'net'], D.trades.map(t =>
        [String(t[0]), when(t[1]), when(t[2]), t[3] > 0 ? 'long' : 'short', num(t[4]), num(t[5]), num(t[6]), reasons[t[7]], num(t[8])]));
}

function luck() {
    const values = D.sharpes;
    if (values.length < 3) return;
    const zero = D.overfit.sharpe_zero ?? null;
    const box = section('How much of the best is luck', 'The Sharpe ratios of all finished trials' + (zero === null ? '.' :
        `, and what the best of ${D.overfit.trials} tries without skill would be expected to reach.`));
    const [low, high] = extent(zero === null ? values : [...values, zero]);
    const bins = Math.min(60, Math.max(8, Math.ceil(Math.sqrt(values.length))));
    const counts = new Array(bins).fill(0);
    for (const v of values) counts[Math.min(bins - 1, Math.floor((v - low) / (high - low) * bins))]++;
    const c = plot(box, {x: [low, high], y: [0, Math.max(...counts)], height: 240,
        xlabel: 'Sharpe ratio per session, not annualised', ylabel: 'trials', label: 'distribution of the trials\' Sharpe ratios'});
    counts.forEach((n, i) => {
        const a = low + (high - low) * i / bins, b = low + (high - low) * (i + 1) / bins;
        tip(el(c.svg, 'rect', {x: c.x(a) + 0.5, width: Math.max(1, c.x(b) - c.x(a) - 1), y: c.y(n), height: c.bottom - c.y(n),
            fill: css('c1'), opacity: 0.7}), `${num(a)} to ${num(b)}: ${n}`);
    });
    const mark = (v, colour, name, y) => {
        el(c.svg, 'path', {d: `M${c.x(v)} ${c.top}V${c.bottom}`, stroke: css(colour), 'stroke-width': 2, class: 'mark'});
        el(c.svg, 'text', {class: 'name', x: c.x(v) - 5, y, 'text-anchor': 'end'}, name);
    };
    mark(Math.max(...values), 'c2', 'best', c.top + 12);
    if (zero !== null) mark(zero, 'bad', 'expected best without skill', c.top + 28);
}

function workers() {
    const spans = D.workers.flatMap(w => w.span);
    if (!spans.length) return;
    const t0 = Math.min(...spans.map(s => s[0])), t1 = Math.max(...spans.map(s => s[1]));
    const box = section('Worker timeline', 'Each bar is a trial on its worker.' + (D.spans_cut ?
        ' Only the last ' + spans.length + ' trials are drawn.' : ''));
    const H = 30 * D.workers.length + 40, W = room(box), left = Math.min(190, W * 0.3);
    const svg = el(box, 'svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'worker timeline'});
    const x = scale(0, Math.max((t1 - t0) / 1e9, 1e-9), left, W - 14), most = Math.floor(left / 6.6);
    D.workers.forEach((w, r) => {
        el(svg, 'text', {class: 'name', x: 4, y: 30 * r + 20}, w.name.length > most ? w.name.slice(0, most - 1) + '…' : w.name);
        for (const [begin, end, trial, state] of w.span) {
            const a = x((begin - t0) / 1e9), b = x((end - t0) / 1e9);
            tip(el(svg, 'rect', {x: a.toFixed(1), width: Math.max(1, b - a).toFixed(1), y: 30 * r + 6, height: 20, rx: 2,
                fill: css(stateColour[state] || 'dim'), opacity: 0.6, stroke: css('panel'), 'stroke-width': 0.6}),
                `trial ${trial}, ${state.toLowerCase()}\n${num((end - begin) / 1e9)} s`);
        }
    });
    for (const v of x.ticks(Math.max(2, Math.floor(W / 130)))) el(svg, 'text', {x: x(v), y: H - 8, 'text-anchor': 'middle'}, num(v) + ' s');
}

function settings() {
    const box = section('Settings', 'What was set, in the study file or by the best trial; everything else had its default.');
    if (D.best_params.length) {
        el(box, 'p', {}, `Trial ${D.leaderboard[0].trial}:`);
        el(box, 'pre', {}, D.best_params.map(p => `"${p.name}" = ${p.text}`).join('\n'));
    }
    const fold = el(box, 'details');
    el(fold, 'summary', {}, 'study file');
    el(fold, 'pre', {}, D.study.toml);
    el(box, 'p', {class: 'dim'}, `seed ${D.study.seed}; data sha256 ${D.study.data_sha256}; study ${D.study.uuid}`);
    table(box, ['fold', 'train', 'validation', 'test', 'test from', 'to'], D.folds.map(f => [String(f.id),
        f.train.join(' to '), f.validation ? f.validation.join(' to ') : '–', f.test.join(' to '), day(f.begin_ns), day(f.end_ns)]));
}

document.title = D.study.name + ' – hyperopt report';
for (const part of [head, leaderboard, history, equity, costs, trades, luck, importance, parallel, curves, workers,
    settings]) {
    part();
}
