. "$pages/pascal.sh"
make_program Server
