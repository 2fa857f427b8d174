# RocksDB's own benchmark: a database is filled in random order, read, and listed; in the current
# directory. Prints what must always be the same.
db_bench --db=db --seed=7 --num=200000 --benchmarks=fillrandom,readrandom,compact,readseq > db.log 2>&1
grep -c 'micros/op' db.log
ldb --db=db scan --hex | cksum
