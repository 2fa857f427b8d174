-- Tables, strings and coroutines come and go, and the collector frees them. For musl.sh.
local rows = {}
for round = 1, 10 do
  for i = 1, 20000 do rows[i] = {name = "n" .. i, list = {i, i + 1, i + 2}} end
  local names = {}
  for i = 1, 2000 do names[#names + 1] = rows[i].name:rep(3) end
  local steps = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield({i}) end end)
  for i = 1, 1000 do assert(steps()[1] == i) end
  print(round, #table.concat(names), rows[20000].name, rows[7].list[3])
end
