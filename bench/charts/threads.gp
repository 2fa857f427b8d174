# Time per operation over the number of threads, four workloads or, in the suite scale, six.
workloads = suite eq 'scale' ? 'pairs-64 churn-small resize-random nexus producers handover' \
  : 'pairs-64 churn-small resize-random nexus'
rows = words(workloads) / 2
set terminal svg size 980,380 * rows font 'sans-serif,12' background 'white'
set datafile missing 'Nan'
set logscale xy
set xtics (1, 2, 4, 8, 16, 32, 64, 128)
set xlabel 'threads'
set ylabel 'ns per operation' offset 1.5
set grid lc rgb '#dddddd'
set key at screen 0.995, 0.93
is_subject(name) = name eq 'LaneMM'
colors = 'black gray50 blue cyan dark-green green orange brown purple magenta gold navy'
color(name, i) = is_subject(name) ? 'red' : word(colors, i)
set multiplot layout rows,2 margins 0.07, 0.8, 0.16 / rows, 1 - 0.1 / rows spacing 0.09, 0.13
do for [workload in workloads] {
  file = data.'/'.workload.'.dat'
  managers = system("head -n 1 ".file)
  set title workload
  plot for [i=2:words(managers)] file using 1:i with linespoints pt 7 ps 0.4 \
    lw (is_subject(word(managers, i)) ? 3 : 1.5) lc rgb color(word(managers, i), i - 1) \
    title columnheader(i)
  unset key
}
unset multiplot
