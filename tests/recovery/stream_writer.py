"""A program that lets a stream of files into a table until all of them are read, or until it dies at a fail point."""

from __future__ import annotations

import sys

import stepwell


def main(warehouse: str, files: str) -> None:
    with stepwell.connect(warehouse) as db:
        db.sql("CREATE TABLE IF NOT EXISTS t (id INT, v STRING)")
        stream = db.spark.readStream.schema("id INT, v STRING").option("maxFilesPerTrigger", 1).csv(files)
        db.insert_stream(stream, "t", name="files", once=True).awaitTermination()
        print(sorted(row[0] for row in db.table("t").collect()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
