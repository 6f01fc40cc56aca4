-- Learning curve of the best trial.
SELECT epoch, reward_mean, loss, epsilon, validation FROM epoch_curve
WHERE trial = (SELECT trial FROM best_trial) ORDER BY epoch;
