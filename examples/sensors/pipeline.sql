-- Sensors: readings at three resolutions, each from the one below, the gaps in them, and the sessions between gaps.

CREATE TABLE readings (
  sensor STRING,
  at TIMESTAMP,
  value DOUBLE,
  WATERMARK FOR at AS at - INTERVAL '10 seconds'
);

COPY readings FROM 'readings.csv' WITH (label = 'first readings');

CREATE MATERIALIZED VIEW per_10s AS
SELECT sensor, window(at, '10 seconds').start AS at, count(*) AS n, sum(value) AS total, min(value) AS low, max(value) AS high
FROM readings
GROUP BY sensor, window(at, '10 seconds');

CREATE MATERIALIZED VIEW per_minute AS
SELECT sensor, window(at, '1 minute').start AS at, sum(n) AS n, sum(total) AS total, min(low) AS low, max(high) AS high
FROM per_10s
GROUP BY sensor, window(at, '1 minute');

CREATE MATERIALIZED VIEW per_hour AS
SELECT sensor, window(at, '1 hour').start AS at, sum(n) AS n, sum(total) / sum(n) AS mean, min(low) AS low, max(high) AS high
FROM per_minute
GROUP BY sensor, window(at, '1 hour');

-- A gap is where a sensor was silent for more than half a minute.
CREATE MATERIALIZED VIEW gaps AS
SELECT sensor, before AS silent_from, at AS silent_until
FROM (SELECT sensor, at, lag(at) OVER (PARTITION BY sensor ORDER BY at) AS before FROM readings)
WHERE at > before + INTERVAL '30 seconds';

-- A session is a stretch without such a gap.
CREATE MATERIALIZED VIEW sessions AS
SELECT sensor, session_window(at, '30 seconds').start AS started, count(*) AS n
FROM readings
GROUP BY sensor, session_window(at, '30 seconds');
