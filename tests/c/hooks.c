/* A library that is preloaded before others: its dlopen and its pthread_create call the next ones. For plugins.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

typedef void *(*opener)(const char *, int);
typedef int (*creator)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

void *dlopen(const char *name, int flags) {
  return ((opener)dlsym(RTLD_NEXT, "dlopen"))(name, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
  return ((creator)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, routine, argument);
}
