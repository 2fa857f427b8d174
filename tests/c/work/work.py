"""Work for programs.sh: sqlite3, json, threads and processes; prints what must always be the same."""

import hashlib
import json
import multiprocessing
import queue
import re
import sqlite3
import threading


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (id integer primary key, name text, value real)")
    rows = ((i, f"name{i * 7919 % 1009}", i / 7) for i in range(60000))
    connection.executemany("insert into t values (?, ?, ?)", rows)
    query = "select name, count(*), round(sum(value), 3) from t group by name order by name"
    return hashlib.sha256(repr(connection.execute(query).fetchall()).encode()).hexdigest()


def document():
    data = {f"k{i}": [j * i for j in range(i % 50)] for i in range(5000)}
    text = json.dumps(data, sort_keys=True)
    assert json.loads(text) == data
    return hashlib.sha256(text.encode()).hexdigest()


def threads():
    jobs, results = queue.Queue(), queue.Queue()

    def work():
        while (job := jobs.get()) is not None:
            text = " ".join(str(job * i % 997) for i in range(2000))
            results.put((job, len(re.findall(r"\b(\d)\d*\1\b", text))))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for job in range(200):
        jobs.put(job)
    for _ in workers:
        jobs.put(None)
    for worker in workers:
        worker.join()
    return sorted(results.get() for _ in range(200))[::20]


def square(number):
    return sum(i * i for i in range(number)), "x" * number


def processes():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        answers = pool.map(square, range(2000), chunksize=50)
    return sum(a for a, _ in answers), sum(len(b) for _, b in answers)


if __name__ == "__main__":
    print(database())
    print(document())
    print(threads())
    print(processes())
