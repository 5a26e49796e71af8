-- Tables with strings in them, string building, and a collection.
math.randomseed(3)
local total = 0
for round = 1, 2 do
  local rows = {}
  for i = 1, 50000 do
    rows[i] = { id = i, name = "row " .. i * round, parts = { i, i / 2, tostring(i * 1.5) } }
  end
  local words = {}
  for i = 1, 30000 do
    words[#words + 1] = string.rep("ab", i % 30 + 1) .. i
  end
  for word in table.concat(words, " "):gmatch("%S+") do
    total = total + #word
  end
  for i = 1, 50000, 3 do
    rows[i] = nil
  end
  collectgarbage()
end
print(total)
