# Prints a list of -v count=N items with attributes and lists in them, for the programs that read
# such files: -v form=xml, json or text, a line for each item.

function item_xml(i) {
  printf "<item id=\"%d\" kind=\"k%d\"><name>%s</name>", i, i % 17, name
  printf "<price currency=\"EUR\">%s</price><tags>", price
  for (j = 0; j < i % 5; j++)
    printf "<tag n=\"%d\">t%d</tag>", j, i * (j + 3) % 101
  print "</tags><text>Item " i " &amp; more of " name "</text></item>"
}

function item_json(i) {
  printf "%s{\"id\": %d, \"kind\": \"k%d\"", i == 1 ? "[" : ",", i, i % 17
  printf ", \"name\": \"%s\", \"price\": %s, \"tags\": [", name, price
  for (j = 0; j < i % 5; j++)
    printf "%s{\"n\": %d, \"tag\": \"t%d\"}", j ? ", " : "", j, i * (j + 3) % 101
  print "]}"
}

function item_text(i) {
  printf "%d,k%d,%s,%s", i, i % 17, name, price
  for (j = 0; j < i % 5; j++)
    printf ",t%d", i * (j + 3) % 101
  print ",Item " i " and more of " name
}

BEGIN {
  if (form == "xml") print "<?xml version=\"1.0\"?>\n<items>"
  for (i = 1; i <= count; i++) {
    name = "name " (i * 7919 % 10007)
    price = sprintf("%.2f", i * 37 % 9973 / 7)
    if (form == "xml") item_xml(i)
    else if (form == "json") item_json(i)
    else item_text(i)
  }
  if (form == "xml") print "</items>"
  if (form == "json") print "]"
}
