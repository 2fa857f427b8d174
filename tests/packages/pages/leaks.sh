. "$pages/pascal.sh"
make_program program
make_program Shop
