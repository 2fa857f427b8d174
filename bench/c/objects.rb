# What ruby is measured with: hashes of arrays of texts, blocks, sorting, groups, patterns.
seed = 42
lists = Hash.new { |hash, key| hash[key] = [] }
150_000.times do |i|
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  key = "k#{seed % 997}"
  lists[key] << "value #{i} of #{seed}"
  lists[key] = lists[key].last(50) if lists[key].size > 100
end
texts = lists.sort.map { |key, list| key + list.map(&:upcase).join(",") }
puts texts.join.size
numbers = (0...150_000).map { |i| [i, i.to_s * (i % 7)] }.to_h
puts numbers.values.group_by(&:size).transform_values(&:size).sort.inspect
puts texts.join(" ").gsub(/[aeiou]/i) { |letter| "<#{letter}>" }.scan("<A>").size
