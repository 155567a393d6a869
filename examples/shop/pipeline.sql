-- A shop. Run it with `stepwell run pipeline.sql`, and again after you have changed it.

-- An order has a key: writing it again corrects it. The watermark says when a day is over.
CREATE TABLE orders (
  id INT PRIMARY KEY,
  sku STRING,
  quantity INT,
  ordered_at TIMESTAMP,
  cancelled BOOLEAN,
  WATERMARK FOR ordered_at AS ordered_at - INTERVAL '1 hour'
);

-- A price holds until the next one of the same article begins.
CREATE TABLE prices (sku STRING, price DECIMAL(10,2), valid_from TIMESTAMP, PRIMARY KEY (sku, valid_from));

COPY prices FROM 'prices.csv' WITH (label = 'prices of May');

CREATE MATERIALIZED VIEW price_periods AS
SELECT sku, price, valid_from, lead(valid_from) OVER (PARTITION BY sku ORDER BY valid_from) AS valid_until
FROM prices;

-- What each order is worth, at the price that held when it was placed.
CREATE MATERIALIZED VIEW order_lines AS
SELECT o.id, o.sku, o.ordered_at, o.quantity * p.price AS amount
FROM orders AS o
JOIN price_periods AS p
  ON p.sku = o.sku AND o.ordered_at >= p.valid_from AND (o.ordered_at < p.valid_until OR p.valid_until IS NULL)
WHERE NOT o.cancelled;

-- Sales as they stand: every correction, cancellation and change of price is in it at once.
CREATE MATERIALIZED VIEW daily_sales AS
SELECT CAST(ordered_at AS DATE) AS day, count(*) AS orders, sum(amount) AS total
FROM order_lines
GROUP BY CAST(ordered_at AS DATE);

CREATE MATERIALIZED VIEW best_sellers AS
SELECT sku, sum(amount) AS total FROM order_lines GROUP BY sku ORDER BY total DESC, sku LIMIT 2;

-- Orders as they were reported: a day appears when it is over, and never changes again. What comes later is in
-- reported_orders$late.
CREATE MATERIALIZED VIEW reported_orders AS
SELECT window(ordered_at, '1 day').start AS day, count(*) AS orders
FROM orders
GROUP BY window(ordered_at, '1 day')
EMIT AFTER WATERMARK;
