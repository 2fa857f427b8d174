# Time against memory: one point per manager, the best one in the lower left corner.
set terminal svg size 820,560 font 'sans-serif,13' background 'white'
set title 'Geometric means over all workloads: less is better'
set xlabel 'time per operation, relative to '.base
set ylabel 'peak resident memory, relative to '.base
set grid lc rgb '#dddddd'
set offsets graph 0.2, graph 0.12, graph 0.08, graph 0.08
unset key
is_subject(name) = name eq 'LaneMM'
plot data.'/overall.dat' using 2:3:(is_subject(strcol(1)) ? 0xcc0000 : 0x336699) \
       with points pt 7 ps 1.2 lc rgb variable, \
     '' using ($5 > 0 && !is_subject(strcol(1)) ? $2 : NaN):4:1 with labels left offset 1,0.4, \
     '' using ($5 < 0 && !is_subject(strcol(1)) ? $2 : NaN):4:1 with labels right offset -1,0.4, \
     '' using (is_subject(strcol(1)) ? $2 : NaN):4:1 with labels center offset 0,-1
