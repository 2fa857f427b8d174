-- What lua is measured with: tables that grow, texts, closures, generated source that is compiled.
local seed, lists = 42, {}
for i = 1, 300000 do
  seed = (seed * 1103515245 + 12345) % 2147483648
  local key = "k" .. seed % 997
  local list = lists[key] or {}
  lists[key] = list
  list[#list + 1] = {id = i, name = "value " .. i, get = function() return i + seed end}
  if #list > 100 then
    lists[key] = {table.unpack(list, 51)}
  end
end
local keys, sum = {}, 0
for key, list in pairs(lists) do
  keys[#keys + 1] = key
  for _, item in ipairs(list) do
    sum = (sum + item.get() + #item.name) % 1000003
  end
end
table.sort(keys)
local source = {}
for i = 1, 3000 do
  source[#source + 1] = string.format(
    "function f%d(a, b) local t = {a, b, %d}; return #t + a * %d end", i, i, i % 7)
end
for _ = 1, 10 do
  assert(load(table.concat(source, "\n")))()
end
print(#keys, sum, f17(3, 4), f3000(1, 2), #table.concat(keys, ","):gsub("%d", "<%0>"))
