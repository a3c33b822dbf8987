/* Loaded before libc: a share of the writes and syncs fails with EIO, as on a dying disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

static int per_mille = 0;
static unsigned int state = 1;
static long failed = 0;

void disk_fails(int share, unsigned int seed) {
    per_mille = share;
    state = seed;
}

long disk_failures(void) { return failed; }

static int fails(void) {
    if (per_mille == 0 || rand_r(&state) % 1000 >= per_mille) return 0;
    failed++;
    errno = EIO;
    return 1;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return fails() ? -1 : REAL("pwrite", ssize_t (*)(int, const void *, size_t, off_t))(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return fails() ? -1 : REAL("pwrite64", ssize_t (*)(int, const void *, size_t, off64_t))(file, data, size, at);
}

int fsync(int file) { return fails() ? -1 : REAL("fsync", int (*)(int))(file); }

int fdatasync(int file) { return fails() ? -1 : REAL("fdatasync", int (*)(int))(file); }

int ftruncate(int file, off_t size) { return fails() ? -1 : REAL("ftruncate", int (*)(int, off_t))(file, size); }

int ftruncate64(int file, off64_t size) {
    return fails() ? -1 : REAL("ftruncate64", int (*)(int, off64_t))(file, size);
}
