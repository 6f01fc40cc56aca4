-- Each parameter: mean objective by choice, or by quarter of its range.
SELECT * FROM param_effect;
