/* Loaded before libc: whatever changes the files of one folder, and every sync, goes to a log, in its order.

RECORDED_FOLDER is the folder, RECORDED_LOG the log, which begins with a page of zeros for the lock that all recorded
processes share. A record tells what has happened; only syncs have two, because others go on writing meanwhile. The
wal-index (-shm) is left out: SQLite makes it anew. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, TRUNCATE, RENAME, UNLINK, MAKE_FOLDER, SYNC_BEGIN, SYNC_END, NOTE };

#define SYNC_MICROSECONDS 300

struct record {
    uint32_t kind, thread;
    uint64_t inode, offset;
    uint32_t first_size, second_size;
};

static const char *folder;
static size_t folder_size;
static int log_file = -1;
static int *lock;

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

__attribute__((constructor)) static void begin(void) {
    folder = getenv("RECORDED_FOLDER");
    folder_size = strlen(folder);
    log_file = REAL("open64", int (*)(const char *, int, ...))(getenv("RECORDED_LOG"), O_RDWR | O_APPEND | O_CLOEXEC);
    lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, log_file, 0);
    if (log_file < 0 || lock == MAP_FAILED) abort();
}

static void take_lock(void) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void give_lock(void) {
    int kept = errno;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    errno = kept;
}

static void note(int kind, uint64_t inode, uint64_t offset, const void *first, size_t first_size, const void *second,
                 size_t second_size) {
    struct record head = {kind, (uint32_t)syscall(SYS_gettid), inode, offset, first_size, second_size};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)first, first_size}, {(void *)second, second_size}};
    int kept = errno;
    ssize_t size = sizeof head + first_size + second_size;
    if (REAL("writev", ssize_t (*)(int, const struct iovec *, int))(log_file, parts, 3) != size) abort();
    errno = kept;
}

void disk_note(const char *text) {
    take_lock();
    note(NOTE, 0, 0, text, strlen(text), NULL, 0);
    give_lock();
}

static int is_recorded(const char *path) {
    size_t size = strlen(path);
    if (strncmp(path, folder, folder_size) != 0 || (path[folder_size] != '/' && path[folder_size] != 0)) return 0;
    return size < 4 || strcmp(path + size - 4, "-shm") != 0;
}

static void path_of_file(int file, char *path) {
    char link[64];
    int kept = errno;
    snprintf(link, sizeof link, file == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    errno = kept;
}

static int path_of(int parent, const char *name, char *path) {
    path[0] = 0;
    if (name[0] != '/') {
        path_of_file(parent, path);
        strncat(path, "/", PATH_MAX - strlen(path) - 1);
    }
    strncat(path, name, PATH_MAX - strlen(path) - 1);
    return is_recorded(path);
}

static uint64_t inode_of(int file) {
    struct stat status;
    int kept = errno;
    uint64_t inode = fstat(file, &status) == 0 ? status.st_ino : 0;
    errno = kept;
    return inode;
}

static int is_recorded_file(int file) {
    char path[PATH_MAX];
    path_of_file(file, path);
    return is_recorded(path);
}

static int open_noted(const char *real, int parent, const char *name, int flags, mode_t mode) {
    int (*open_really)(int, const char *, int, ...) = REAL(real, int (*)(int, const char *, int, ...));
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !path_of(parent, name, path)) return open_really(parent, name, flags, mode);
    take_lock();
    int file = open_really(parent, name, flags, mode);
    if (file >= 0) note(CREATE, inode_of(file), 0, path, strlen(path), NULL, 0);
    if (file >= 0 && flags & O_TRUNC) note(TRUNCATE, inode_of(file), 0, NULL, 0, NULL, 0);
    give_lock();
    return file;
}

#define MODE_ARGUMENT                       \
    va_list arguments;                      \
    va_start(arguments, flags);             \
    mode_t mode = va_arg(arguments, mode_t); \
    va_end(arguments)

int openat(int parent, const char *name, int flags, ...) {
    MODE_ARGUMENT;
    return open_noted("openat", parent, name, flags, mode);
}

int openat64(int parent, const char *name, int flags, ...) {
    MODE_ARGUMENT;
    return open_noted("openat64", parent, name, flags, mode);
}

int open(const char *name, int flags, ...) {
    MODE_ARGUMENT;
    return open_noted("openat", AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    MODE_ARGUMENT;
    return open_noted("openat64", AT_FDCWD, name, flags, mode);
}

ssize_t write(int file, const void *data, size_t size) {
    ssize_t (*write_really)(int, const void *, size_t) = REAL("write", ssize_t (*)(int, const void *, size_t));
    if (!is_recorded_file(file)) return write_really(file, data, size);
    take_lock();
    ssize_t written = write_really(file, data, size);
    if (written > 0) note(WRITE, inode_of(file), lseek(file, 0, SEEK_CUR) - written, data, written, NULL, 0);
    give_lock();
    return written;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    ssize_t (*write_really)(int, const void *, size_t, off64_t) =
        REAL("pwrite64", ssize_t (*)(int, const void *, size_t, off64_t));
    if (!is_recorded_file(file)) return write_really(file, data, size, at);
    take_lock();
    ssize_t written = write_really(file, data, size, at);
    if (written > 0) note(WRITE, inode_of(file), at, data, written, NULL, 0);
    give_lock();
    return written;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return pwrite64(file, data, size, at); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    ssize_t total = 0;
    if (!is_recorded_file(file)) return REAL("writev", ssize_t (*)(int, const struct iovec *, int))(file, parts, count);
    for (int number = 0; number < count; number++) {
        ssize_t written = write(file, parts[number].iov_base, parts[number].iov_len);
        if (written < 0) return total ? total : -1;
        total += written;
        if ((size_t)written < parts[number].iov_len) break;
    }
    return total;
}

int ftruncate64(int file, off64_t size) {
    int (*truncate_really)(int, off64_t) = REAL("ftruncate64", int (*)(int, off64_t));
    if (!is_recorded_file(file)) return truncate_really(file, size);
    take_lock();
    int result = truncate_really(file, size);
    if (result == 0) note(TRUNCATE, inode_of(file), size, NULL, 0, NULL, 0);
    give_lock();
    return result;
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

/* Nothing needs to be durable here, but others must have time to write meanwhile. */
static int sync_noted(const char *real, int file) {
    if (!is_recorded_file(file)) return REAL(real, int (*)(int))(file);
    note(SYNC_BEGIN, inode_of(file), 0, NULL, 0, NULL, 0);
    usleep(SYNC_MICROSECONDS);
    note(SYNC_END, inode_of(file), 0, NULL, 0, NULL, 0);
    return 0;
}

int fsync(int file) { return sync_noted("fsync", file); }

int fdatasync(int file) { return sync_noted("fdatasync", file); }

int renameat(int old_parent, const char *old_name, int new_parent, const char *new_name) {
    int (*rename_really)(int, const char *, int, const char *) =
        REAL("renameat", int (*)(int, const char *, int, const char *));
    char old_path[PATH_MAX], new_path[PATH_MAX];
    int is_here = path_of(old_parent, old_name, old_path);
    if (!path_of(new_parent, new_name, new_path) && !is_here)
        return rename_really(old_parent, old_name, new_parent, new_name);
    take_lock();
    int result = rename_really(old_parent, old_name, new_parent, new_name);
    if (result == 0) note(RENAME, 0, 0, old_path, strlen(old_path), new_path, strlen(new_path));
    give_lock();
    return result;
}

int rename(const char *old_name, const char *new_name) { return renameat(AT_FDCWD, old_name, AT_FDCWD, new_name); }

int unlinkat(int parent, const char *name, int flags) {
    int (*unlink_really)(int, const char *, int) = REAL("unlinkat", int (*)(int, const char *, int));
    char path[PATH_MAX];
    if (!path_of(parent, name, path)) return unlink_really(parent, name, flags);
    take_lock();
    int result = unlink_really(parent, name, flags);
    if (result == 0) note(UNLINK, 0, 0, path, strlen(path), NULL, 0);
    give_lock();
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int parent, const char *name, mode_t mode) {
    int (*make_really)(int, const char *, mode_t) = REAL("mkdirat", int (*)(int, const char *, mode_t));
    char path[PATH_MAX];
    struct stat status;
    if (!path_of(parent, name, path)) return make_really(parent, name, mode);
    take_lock();
    int result = make_really(parent, name, mode);
    if (result == 0 && stat(path, &status) == 0) note(MAKE_FOLDER, status.st_ino, 0, path, strlen(path), NULL, 0);
    give_lock();
    return result;
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
