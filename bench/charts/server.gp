# CPU time of a server per request: a group of bars for each path, a bar for each manager, with the range of its runs.
set terminal svg size 900,430 font 'sans-serif,13' background 'white'
set title "CPU time of the server per request, Free Pascal's heap = 1: less is better"
set style data histograms
set style histogram errorbars gap 2 lw 1
set style fill solid border rgb 'white'
set errorbars 0.4 lc rgb '#444444'
set grid y lc rgb '#dddddd'
set yrange [0:*]
set xtics scale 0
set key outside right top
colors = '#888888 #c9a227 #7f6a00 #9ecae1 #4292c6 #08519c'
file = data.'/server.dat'
names = system('head -n 1 '.file)
color(name, i) = name eq 'LaneMM' ? '#cc0000' : name eq 'FPC-again' ? '#bbbbbb' : word(colors, i)
plot for [i=0:words(names) / 3 - 1] file skip 1 using 3 * i + 2:3 * i + 3:3 * i + 4:xtic(1) \
  lc rgb color(word(names, 3 * i + 2), i + 1) title word(names, 3 * i + 2)
