# Prints a history for git fast-import: 40 commits on 3000 files, each of which changes 400 of them.
BEGIN {
  for (commit = 1; commit <= 40; commit++) {
    print "commit refs/heads/main\ncommitter a <a@b> " 1577836800 + commit " +0000"
    print "data <<end\ncommit " commit "\nend\n"
    for (i = 0; i < (commit == 1 ? 3000 : 400); i++) {
      file = commit == 1 ? i : (i * 7 + commit * 131) % 3000
      printf "M 644 inline dir%d/file%d.txt\ndata <<end\n", file % 50, file
      for (line = 0; line < 60; line++)
        print line * file % (commit % 7 + 2), "line", line, "of", file
      print "end"
    }
  }
}
