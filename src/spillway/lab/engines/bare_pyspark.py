"""Bare PySpark up to the answer of its first Python job: what any Python program on Spark waits for."""

import sys

from pyspark import SparkConf, SparkContext


def main() -> None:
    master = sys.argv[1]
    with SparkContext(conf=SparkConf().setMaster(master).set("spark.ui.enabled", "false")) as context:
        found = context.parallelize(range(4), 2).map(lambda number: number * 2).collect()
        sys.stdout.write(f"{found}\n")
        sys.stdout.flush()
        sys.stdin.readline()  # who measures stops the clock, then lets it end


if __name__ == "__main__":
    main()
