# Strings, arrays and a hash of arrays.
words = (0...80_000).map { |i| "w#{i}" * (1 + i % 6) }
by_length = Hash.new { |hash, key| hash[key] = [] }
words.each { |word| by_length[word.size] << word.reverse }
2.times { words = words.map { |word| word[1..] + word[0] }.sort }
puts words.each_slice(10).map { |slice| slice.join(",") }.size, by_length.size
