-- What programs.sh asks sqlite3.
create table t (id integer primary key, name text, value real, data blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
  insert into t select i, 'name ' || (i * 7919 % 10007), i * 0.37, zeroblob(i % 100) from n;
create index byname on t (name, value);
select count(*), sum(length(data)), round(sum(value), 2) from t;
select name, count(*), round(avg(value), 3) from t group by name order by name limit 500;
select a.name, count(*) from t a join t b on a.name = b.name and a.id < b.id
  group by a.name order by 2 desc, 1 limit 20;
update t set name = upper(name) || replace(name, 'a', 'bb') where id % 3 = 0;
delete from t where id % 5 = 0;
select group_concat(name, ',') from (select distinct name from t order by name);
select json_group_array(json_object('n', name, 'v', value)) from (select * from t limit 20000);
vacuum;
pragma integrity_check;
select count(*), round(total(value), 2) from t where name like '%99%';
