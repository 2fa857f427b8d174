# What jq is measured with: objects and arrays that are selected, made anew, grouped and sorted.
map(select(.price > 100) | {id, name: (.name | ascii_upcase), tags: [.tags[] | .tag], price})
| group_by(.tags | length)
| map({tags: (.[0].tags | length), count: length, sum: (map(.price) | add | floor),
    names: (map(.name) | unique | length),
    first: (sort_by(.name)[0] | .name), ids: (map(.id | tostring) | join(",") | length)})
