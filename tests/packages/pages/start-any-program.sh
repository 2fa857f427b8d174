. "$pages/program.sh"
