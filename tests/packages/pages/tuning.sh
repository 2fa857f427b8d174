. "$pages/pascal.sh"
make_program program
