-- Every table and view with its columns.
SELECT m.type, m.name AS "table", group_concat(c.name, ' ') AS columns
FROM sqlite_master m JOIN pragma_table_info(m.name) c
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%'
GROUP BY m.type, m.name ORDER BY m.type, m.name;
