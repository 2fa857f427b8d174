# A program on the path, `program`, that fails unless it runs on the library; its source beside the reader.
cp "$pages/program.c" .
mkdir -p ~/bin
gcc -O0 -o ~/bin/program program.c
PATH=$HOME/bin:$PATH
