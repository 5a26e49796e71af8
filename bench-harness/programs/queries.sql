-- Tables, indexes, joins and text functions in memory.
PRAGMA journal_mode = OFF;
CREATE TABLE item(id INTEGER PRIMARY KEY, place INTEGER, label TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
  INSERT INTO item SELECT i, (i * 6151) % 50000, 'label ' || i || ' ' || hex(i * 37) FROM n;
CREATE INDEX by_place ON item(place);
CREATE INDEX by_label ON item(label);
CREATE TABLE bag AS SELECT place, count(*) AS many, group_concat(label, '|') AS labels FROM item GROUP BY place % 2500;
SELECT count(*), sum(length(a.label || b.labels)) FROM item a JOIN bag b ON a.place = b.place;
UPDATE item SET label = label || upper(label) WHERE id % 3 = 0;
DELETE FROM item WHERE id % 5 = 0;
SELECT count(*) FROM (SELECT DISTINCT substr(label, 1, 9) AS start FROM item ORDER BY start DESC);
SELECT sum(length(replace(printf('%s-%d-%s', label, place, lower(label)), 'l', 'LL'))) FROM item;
SELECT count(*) FROM item WHERE label LIKE '%77%' OR label GLOB '*B2*';
