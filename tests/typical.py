"""A hundred queries as analysts write them: TPC-H, Nexmark, and what else is usual over the tables of a shop."""

from __future__ import annotations

from stepwell.bench import nexmark, tpch_queries

SHOP = {
    "sales": (
        "id BIGINT, customer BIGINT, product BIGINT, store STRING, at TIMESTAMP, amount DECIMAL(12,2), quantity INT,"
        " channel STRING, tags ARRAY<STRING>, address STRUCT<city: STRING, zip: STRING>, extra MAP<STRING, STRING>,"
        " discount DOUBLE, returned BOOLEAN, note STRING, WATERMARK FOR at AS at - INTERVAL '1 minute'"
    ),
    "customers": "id BIGINT, name STRING, region STRING, joined DATE, referred_by BIGINT",
    "products": "id BIGINT, name STRING, category STRING, price DECIMAL(12,2), active BOOLEAN",
    "events": (
        "session STRING, person BIGINT, kind STRING, page STRING, at TIMESTAMP, value DOUBLE, payload STRING,"
        " WATERMARK FOR at AS at - INTERVAL '1 minute'"
    ),
    "trades": (
        "symbol STRING, price DOUBLE, volume BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds'"
    ),
    "quotes": "symbol STRING, bid DOUBLE, ask DOUBLE, at TIMESTAMP",
    "targets": "store STRING, month DATE, goal DECIMAL(14,2)",
}

TABLES = {**tpch_queries.TABLES, **nexmark.TABLES, **SHOP}

OF_A_SHOP = {
    # -- rows
    "tag_rows": "SELECT id, explode(tags) AS tag FROM sales",
    "tag_view": "SELECT s.id, t.pos, t.tag FROM sales AS s LATERAL VIEW posexplode(tags) t AS pos, tag",
    "tag_outer": "SELECT s.id, t.tag FROM sales AS s LATERAL VIEW OUTER explode(tags) t AS tag",
    "extra_entries": "SELECT id, key, value FROM sales LATERAL VIEW explode(extra) e AS key, value",
    "json_fields": "SELECT session, from_json(payload, 'item STRING, price DOUBLE').item AS item, get_json_object(payload, '$.price') AS price FROM events",
    "struct_fields": "SELECT id, address.city AS city, extra['campaign'] AS campaign, tags[0] AS tag FROM sales",
    "both_channels": "SELECT id, amount FROM sales WHERE channel = 'web' UNION ALL SELECT id, amount FROM sales WHERE channel = 'shop'",
    "stacked": "SELECT id, measure, value FROM sales LATERAL VIEW stack(2, 'amount', CAST(amount AS DOUBLE), 'quantity', CAST(quantity AS DOUBLE)) m AS measure, value",
    "unpivoted": "SELECT * FROM (SELECT id, bid, ask FROM (SELECT row_number() OVER (PARTITION BY symbol ORDER BY at, bid, ask) AS id, bid, ask FROM quotes)) UNPIVOT (price FOR side IN (bid, ask))",
    # -- joins
    "enriched": "SELECT s.id, c.region, p.category, s.amount FROM sales AS s JOIN customers AS c ON s.customer = c.id JOIN products AS p ON s.product = p.id",
    "kept_sales": "SELECT s.id, s.amount, c.name FROM sales AS s LEFT JOIN customers AS c ON s.customer = c.id",
    "never_bought": "SELECT p.id, p.name FROM products AS p LEFT ANTI JOIN sales AS s ON p.id = s.product",
    "all_of_both": "SELECT coalesce(c.id, s.customer) AS customer, c.name, s.amount FROM customers AS c FULL JOIN sales AS s ON c.id = s.customer",
    "with_using": "SELECT * FROM (SELECT customer AS id, amount FROM sales) JOIN customers USING (id)",
    "rate_at_trade": "SELECT t.symbol, t.at, t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol AND q.at BETWEEN t.at - INTERVAL 1 MINUTE AND t.at",
    "as_of": "SELECT t.symbol, t.at, t.price, q.bid FROM trades AS t JOIN (SELECT symbol, at, bid, lead(at) OVER (PARTITION BY symbol ORDER BY at) AS until FROM quotes) AS q ON t.symbol = q.symbol AND t.at >= q.at AND (t.at < q.until OR q.until IS NULL)",
    "price_bands": "SELECT p.name, b.band FROM products AS p JOIN VALUES (0, 10, 'cheap'), (10, 1000, 'dear') AS b(low, high, band) ON p.price >= b.low AND p.price < b.high",
    # -- groups
    "by_store": "SELECT store, count(*) AS n, sum(amount) AS total, avg(amount) AS mean, min(at) AS first, max(at) AS last FROM sales GROUP BY store",
    "grand_total": "SELECT count(*) AS n, sum(amount) AS total, max(at) AS last FROM sales",
    "good_customers": "SELECT customer, sum(amount) AS total FROM sales GROUP BY customer HAVING count(*) > 3 AND sum(amount) > 1000",
    "visitors": "SELECT date_trunc('day', at) AS day, count(DISTINCT person) AS people, count(*) AS hits FROM events GROUP BY date_trunc('day', at)",
    "spread": "SELECT store, stddev(amount) AS deviation, variance(discount) AS v, corr(discount, quantity) AS c FROM sales GROUP BY store",
    "middles": "SELECT store, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS median, percentile_approx(amount, 0.9) AS p90 FROM sales GROUP BY store",
    "lists": "SELECT customer, collect_set(channel) AS channels, array_sort(collect_list(product)) AS products FROM sales GROUP BY customer",
    "rates": "SELECT store, count_if(returned) / count(*) AS returned, avg(CASE WHEN channel = 'web' THEN 1.0 ELSE 0.0 END) AS web, bool_or(amount < 0) AS odd FROM sales GROUP BY store",
    "best_of": "SELECT store, max_by(product, amount) AS best, min_by(customer, at) AS first FROM sales GROUP BY store",
    "approximate": "SELECT store, approx_count_distinct(customer) AS customers FROM sales GROUP BY store",
    "filtered": "SELECT store, sum(amount) FILTER (WHERE channel = 'web') AS web, count(*) FILTER (WHERE returned) AS back FROM sales GROUP BY store",
    "by_city": "SELECT address.city AS city, sum(amount) AS total FROM sales GROUP BY address.city",
    "listed": "SELECT customer, listagg(channel, ',') WITHIN GROUP (ORDER BY at, id) AS channels FROM sales GROUP BY customer",
    # -- sets of groups, pivots
    "cube": "SELECT store, channel, sum(amount) AS total, grouping_id() AS level FROM sales GROUP BY CUBE (store, channel)",
    "rollup": "SELECT p.category, s.store, sum(s.amount) AS total FROM sales AS s JOIN products AS p ON s.product = p.id GROUP BY ROLLUP (p.category, s.store)",
    "sets": "SELECT store, channel, customer, count(*) AS n FROM sales GROUP BY GROUPING SETS ((store, channel), (customer), ())",
    "sets_of_structs": "SELECT address, store, count(*) AS n FROM sales GROUP BY GROUPING SETS ((address), (store))",
    "pivoted": "SELECT * FROM (SELECT store, channel, amount FROM sales) PIVOT (sum(amount) FOR channel IN ('web', 'shop', 'phone'))",
    "pivoted_twice": "SELECT * FROM (SELECT store, channel, amount FROM sales) PIVOT (sum(amount) AS total, count(amount) AS n FOR channel IN ('web' AS web, 'shop' AS shop))",
    # -- subqueries and CTEs
    "above_average": "SELECT s.id, s.amount FROM sales AS s WHERE s.amount > (SELECT avg(amount) FROM sales AS x WHERE x.store = s.store)",
    "active_only": "SELECT id, amount FROM sales WHERE product IN (SELECT id FROM products WHERE active)",
    "lost_customers": "SELECT id, name FROM customers AS c WHERE NOT EXISTS (SELECT 1 FROM sales AS s WHERE s.customer = c.id AND s.amount > 10)",
    "either": "SELECT id, amount FROM sales AS s WHERE s.returned OR EXISTS (SELECT 1 FROM products AS p WHERE p.id = s.product AND p.active)",
    "share": "SELECT store, sum(amount) / (SELECT sum(amount) FROM sales) AS share FROM sales GROUP BY store",
    "two_steps": "WITH totals AS (SELECT customer, sum(amount) AS total FROM sales GROUP BY customer), regions AS (SELECT c.region, t.total FROM totals AS t JOIN customers AS c ON t.customer = c.id) SELECT region, avg(total) AS mean, count(*) AS n FROM regions GROUP BY region",
    "last_purchase": "SELECT c.id, c.name, l.amount FROM customers AS c, LATERAL (SELECT amount FROM sales AS s WHERE s.customer = c.id ORDER BY at DESC, id LIMIT 1) AS l",
    # -- sets
    "known_people": "SELECT customer AS id FROM sales UNION SELECT person FROM events",
    "buyers_who_look": "SELECT customer AS id FROM sales INTERSECT SELECT person FROM events",
    "lookers_only": "SELECT person FROM events EXCEPT SELECT customer FROM sales",
    "categories": "SELECT DISTINCT category, active FROM products",
    # -- windows over rows
    "newest": "SELECT customer, id, amount FROM sales QUALIFY row_number() OVER (PARTITION BY customer ORDER BY at DESC, id) = 1",
    "top_products": "SELECT store, product, total FROM (SELECT store, product, sum(amount) AS total, rank() OVER (PARTITION BY store ORDER BY sum(amount) DESC) AS place FROM sales GROUP BY store, product) WHERE place <= 3",
    "running": "SELECT id, store, sum(amount) OVER (PARTITION BY store ORDER BY at, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far, lag(amount) OVER (PARTITION BY store ORDER BY at, id) AS before FROM sales",
    "funnel": "SELECT session, max(CASE WHEN kind = 'view' THEN 1 ELSE 0 END) AS viewed, max(CASE WHEN kind = 'buy' THEN 1 ELSE 0 END) AS bought, min(at) FILTER (WHERE kind = 'buy') AS bought_at FROM events GROUP BY session",
    "moving": "SELECT symbol, at, avg(price) OVER (PARTITION BY symbol ORDER BY at RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW) AS mean FROM trades",
    "latest_sales": "SELECT id, at, amount FROM sales ORDER BY at DESC, id LIMIT 100",
    "shares_of_all": "SELECT store, total, total / sum(total) OVER () AS share FROM (SELECT store, sum(amount) AS total FROM sales GROUP BY store)",
    # -- windows of time
    "bars": "SELECT symbol, TUMBLE_START(at, INTERVAL '1 minute') AS bar, FIRST_VALUE(price) AS open, max(price) AS high, min(price) AS low, LAST_VALUE(price) AS close, sum(volume) AS volume FROM trades GROUP BY symbol, TUMBLE(at, INTERVAL '1 minute')",
    "weighted": "SELECT symbol, time_bucket(INTERVAL '1 hour', at) AS bar, sum(price * volume) / sum(volume) AS vwap FROM trades GROUP BY symbol, time_bucket(INTERVAL '1 hour', at)",
    "hops": "SELECT kind, HOP_START(at, INTERVAL '1 minute', INTERVAL '5 minutes') AS w, count(*) AS n FROM events GROUP BY kind, HOP(at, INTERVAL '1 minute', INTERVAL '5 minutes')",
    "visits": "SELECT person, SESSION_START(at, INTERVAL '30 minutes') AS s, SESSION_END(at, INTERVAL '30 minutes') AS e, count(*) AS n FROM events GROUP BY person, SESSION(at, INTERVAL '30 minutes')",
    "spark_window": "SELECT store, window(at, '10 minutes', '5 minutes').start AS w, sum(amount) AS total FROM sales GROUP BY store, window(at, '10 minutes', '5 minutes')",
    "months": "SELECT t.store, t.month, t.goal, s.total FROM targets AS t LEFT JOIN (SELECT store, CAST(date_trunc('month', at) AS DATE) AS month, sum(amount) AS total FROM sales GROUP BY 1, 2) AS s ON t.store = s.store AND t.month = s.month",
}  # fmt: skip

_MUCH_THE_SAME = ("q0", "q2", "q13", "q20", "q22")

QUERIES = {
    **{f"tpch_{name}": query for name, query in tpch_queries.QUERIES.items()},
    **{f"nexmark_{name}": query for name, query in nexmark.QUERIES.items() if name not in _MUCH_THE_SAME},
    **OF_A_SHOP,
}
