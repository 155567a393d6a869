"""What happens to a shop: orders, a late one, a correction, a cancellation, and a price that was wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import stepwell
from stepwell.cli import main as command

HERE = Path(__file__).parent


def show(db: stepwell.Database, title: str) -> None:
    print(f"-- {title}")
    for day, orders, total in db.sql("SELECT * FROM daily_sales ORDER BY day").collect():
        print(f"{day}: {orders} orders, {total}")
    best = db.sql("SELECT sku, total FROM best_sellers ORDER BY total DESC, sku").collect()
    print("best:", ", ".join(f"{row.sku} {row.total}" for row in best))


def main(warehouse: str) -> None:
    command(["run", str(HERE / "pipeline.sql"), "-w", warehouse], standalone_mode=False)
    with stepwell.connect(warehouse) as db:
        db.sql(
            "INSERT INTO orders VALUES"
            " (1, 'tea', 2, '2024-05-01 09:00:00', false), (2, 'cup', 1, '2024-05-01 10:00:00', false),"
            " (3, 'pot', 1, '2024-05-02 11:00:00', false), (4, 'tea', 3, '2024-05-02 13:00:00', false)"
        )
        show(db, "two days of orders")

        order = {"id": 5, "sku": "tea", "at": "2024-05-01 23:30:00"}
        insert = "INSERT INTO orders SELECT :id, :sku, 10, CAST(:at AS TIMESTAMP), false"
        db.sql(insert, order)
        show(db, "an order of the first day comes a day late")

        db.sql(
            "INSERT INTO orders VALUES (4, 'tea', 1, '2024-05-02 13:00:00', false)"
        )  # the key is there: a correction
        db.sql("UPDATE orders SET cancelled = true WHERE id = ?", [3])
        show(db, "order 4 was one, not three; order 3 is cancelled")

        db.sql("UPDATE prices SET price = '4.50' WHERE sku = 'tea' AND valid_from = '2024-05-01'")
        show(db, "tea had cost 4.50 on the first day")

        print("-- as it was reported when the first day was over")
        for day, orders in db.sql("SELECT * FROM reported_orders ORDER BY day").collect():
            print(f"{day:%Y-%m-%d}: {orders} orders")
        [(late,)] = db.sql("SELECT count(*) FROM reported_orders$late").collect()
        print("came too late for the report:", late)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "shop-warehouse")
