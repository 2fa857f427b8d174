# CPU time of a server per request: a group of bars for each path, a bar for each manager.
set terminal svg size 900,430 font 'sans-serif,13' background 'white'
set title "CPU time of the server per request, Free Pascal's heap = 1: less is better"
set style data histograms
set style histogram clustered gap 1.5
set style fill solid border rgb 'white'
set grid y lc rgb '#dddddd'
set yrange [0:*]
set xtics scale 0
set key outside right top
colors = '#999999 #c9a227 #7f6a00 #9ecae1 #4292c6 #08519c #08306b'
file = data.'/server.dat'
managers = system('head -n 1 '.file)
color(name, i) = name eq 'LaneMM' ? '#cc0000' : word(colors, i)
plot for [i=2:words(managers)] file using i:xtic(1) lc rgb color(word(managers, i), i - 1) title columnheader(i)
