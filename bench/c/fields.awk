# What gawk is measured with: fields, patterns, arrays of arrays, texts that are put together.
BEGIN { FS = "," }
{
  count[$2]++
  sum[$2] += $4
  for (i = 5; i < NF; i++) {
    seen[$2][$i] = seen[$2][$i] ":" $1 % 7
    last[$i] = toupper(substr($3, 1, 6)) " " $1
  }
  line = $NF
  gsub(/[aeiou]/, "<&>", line)
  length_of += length(line)
  names[$3] = names[$3] sprintf("%06d;", $1)
  if (match(line, /n<[a-z]>m/)) matched += RSTART
}
END {
  n = asorti(count, order)
  for (i = 1; i <= n; i++) {
    printf "%s %d %.2f", order[i], count[order[i]], sum[order[i]]
    m = asorti(seen[order[i]], tags)
    for (j = 1; j <= m; j++)
      total += length(seen[order[i]][tags[j]])
    print "", m, total
  }
  n = asort(names)
  print n, names[1], length(names[n]), length_of, matched, length(last)
}
