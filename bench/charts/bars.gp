# Three bars: how long an operation takes, of Free Pascal's heap, the base and the subject.
set terminal svg size 720,170 font 'sans-serif,15' background 'white'
set title 'Time per operation, LaneMM = 1: less is better'
unset key
unset border
unset xtics
set ytics scale 0
set bmargin 0.6
set xrange [0:*]
set yrange [2.6:-0.6]
set offsets 0, 0.5, 0, 0
name(id) = id eq 'FPC' ? "Free Pascal's heap" : id eq 'mimalloc3' ? 'mimalloc 3' : id
is_subject(id) = id eq 'LaneMM'
plot data.'/bars.dat' using (0):0:(0):2:($0 - 0.32):($0 + 0.32):(is_subject(strcol(1)) ? 0xcc0000 : 0x336699):ytic(name(strcol(1))) \
       with boxxyerror fs solid lc rgb variable, \
     '' using 2:0:(sprintf('%.1f', $2)) with labels left offset 0.6,0
