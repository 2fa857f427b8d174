/* Fails unless the library, static or shared, is its malloc: LaneMM's blocks of 24 bytes hold 32. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

int main(void)
{
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");

  while (maps && fgets(line, sizeof line, maps))
    found |= strstr(line, "liblanemm") != NULL;
  return !(found || malloc_usable_size(malloc(24)) == 32);
}
