# Counts, matches, sorts, forks; as many words as the argument says.
use strict; use warnings;
my (%count, @all); my $seed = 42;
for my $i (1 .. ($ARGV[0] // 300000)) {
  $seed = ($seed * 1103515245 + 12345) % 2147483648;
  my $word = join '', map { chr(97 + ($seed >> $_) % 26) } 3, 7, 11, 15;
  $count{$word}{length}++; $count{$word}{list} .= "$i,";
  push @all, $word if $i % 10 == 0;
}
my $text = join ' ', @all; my $hits = () = $text =~ /\b([aeiou])\w*?\1\b/g;
(my $other = $text) =~ s/(\w)(\w)/$2$1/g;
print "$hits ", length $other, "\n";
print "$_ $count{$_}{length} ", length $count{$_}{list}, "\n"
  for (sort { $count{$b}{length} <=> $count{$a}{length} || $a cmp $b } keys %count)[0 .. 99];
my @sorted = sort map { scalar reverse } @all; print "@sorted[0 .. 20]\n";
my $pid = fork // die; if (!$pid) { my @child = map { $_ x 3 } @all; exit(@child == @all ? 0 : 1) }
waitpid $pid, 0; print "child $?\n";
