-- The baselines on each fold and on the joined series (fold -1).
SELECT policy, fold, sharpe, total_return, max_drawdown, trades, total_pnl FROM baseline ORDER BY policy, fold;
