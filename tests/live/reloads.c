/* Loads a library with a malloc of its own, works with it, and unloads it, until its standard input ends:
 *   reloads LIBRARY
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  if (count < 2)
    return 2;
  puts("ready");
  fflush(stdout);
  do {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
      return 2;
    void (*work)(void) = (void (*)(void))dlsym(library, "library_work");
    for (int i = 0; i < 30 && poll(&input, 1, 1) == 0; i++)
      work();
    dlclose(library);
  } while (poll(&input, 1, 0) == 0);
  return 0;
}
