/* A library to preload: counts the calls of a process that change files in given folders, and at the call of a given number
 * returns an error, once or from then on, or ends the process with SIGKILL. Built and used by torture.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT = 0, FAIL_ONCE = 1, FAIL_FROM_NOW = 2, KILL = 3 };

static char folders[2][PATH_MAX];
static long calls = 0, chosen = -1;
static int action = COUNT, code = 0, armed = 0;
static void (*note)(const char *call, const char *path) = NULL;
static __thread char last[PATH_MAX];

void torture_arm(const char *one, const char *other, long at, int what, int error)
{
    snprintf(folders[0], PATH_MAX, "%s", one);
    snprintf(folders[1], PATH_MAX, "%s", other);
    calls = 0;
    chosen = at;
    action = what;
    code = error;
    armed = 1;
}

/* From now on, call a function with the name and the path of each call that is counted. */
void torture_note(void (*function)(const char *call, const char *path)) { note = function; }

long torture_calls(void) { return calls; }

static int below(const char *path)
{
    snprintf(last, PATH_MAX, "%s", path);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(folders[i]);
        if (n && strncmp(path, folders[i], n) == 0 && (path[n] == '/' || path[n] == 0)) return 1;
    }
    return 0;
}

static int fd_below(int fd)
{
    char link[64], path[PATH_MAX];
    if (!armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return below(path);
}

/* The working directory of the commands is one of the folders, so that a relative path is below it. */
static int path_below(int fd, const char *path)
{
    if (!armed) return 0;
    if (path[0] == '/') return below(path);
    int found = fd == AT_FDCWD ? 1 : fd_below(fd);
    snprintf(last, PATH_MAX, "%s", path);
    return found;
}

/* 0: do it; 1: fail; 2: the call of the chosen number, of which half may be done. Unlinking never fails for lack of space. */
static int verdict(const char *call, int frees)
{
    calls++;
    if (note) note(call, last);
    if (action == COUNT || calls < chosen) return 0;
    if (calls == chosen && action == KILL) return 2;
    if (frees && code != EIO) return 0;
    if (calls == chosen && action == FAIL_FROM_NOW) return 2;
    if ((calls == chosen && action == FAIL_ONCE) || (calls > chosen && action == FAIL_FROM_NOW)) return 1;
    return 0;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS(inside, frees)                                  \
    do {                                                      \
        if (inside) {                                         \
            int found = verdict(__func__, frees);                       \
            if (found == 2 && action == KILL) die();          \
            if (found) { errno = code; return -1; }           \
        }                                                     \
    } while (0)

#define WRITES(name, arguments, half)                         \
    do {                                                      \
        if (fd_below(fd)) {                                   \
            int found = verdict(__func__, 0);                 \
            if (found == 2 && n > 1) {                        \
                ssize_t done = half;                          \
                if (action == KILL) die();                    \
                return done;                                  \
            }                                                 \
            if (found == 2 && action == KILL) die();          \
            if (found) { errno = code; return -1; }           \
        }                                                     \
        return REAL(name) arguments;                          \
    } while (0)

ssize_t write(int fd, const void *data, size_t n) { WRITES(write, (fd, data, n), REAL(write)(fd, data, n / 2)); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { WRITES(pwrite, (fd, data, n, at), REAL(pwrite)(fd, data, n / 2, at)); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { WRITES(pwrite64, (fd, data, n, at), REAL(pwrite64)(fd, data, n / 2, at)); }
ssize_t writev(int fd, const struct iovec *parts, int n_parts) { FAILS(fd_below(fd), 0); return REAL(writev)(fd, parts, n_parts); }
ssize_t sendfile(int to, int from, off_t *at, size_t n) { FAILS(fd_below(to), 0); return REAL(sendfile)(to, from, at, n); }
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t n, unsigned flags)
{ FAILS(fd_below(to), 0); return REAL(copy_file_range)(from, at, to, to_at, n, flags); }
int fsync(int fd) { FAILS(fd_below(fd), 0); return REAL(fsync)(fd); }
int fdatasync(int fd) { FAILS(fd_below(fd), 0); return REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t n) { FAILS(fd_below(fd), 1); return REAL(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { FAILS(fd_below(fd), 1); return REAL(ftruncate64)(fd, n); }
int rename(const char *from, const char *to) { FAILS(path_below(AT_FDCWD, to), 0); return REAL(rename)(from, to); }
int renameat(int a, const char *from, int b, const char *to) { FAILS(path_below(b, to), 0); return REAL(renameat)(a, from, b, to); }
int link(const char *from, const char *to) { FAILS(path_below(AT_FDCWD, to), 0); return REAL(link)(from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) { FAILS(path_below(b, to), 0); return REAL(linkat)(a, from, b, to, flags); }
int symlink(const char *from, const char *to) { FAILS(path_below(AT_FDCWD, to), 0); return REAL(symlink)(from, to); }
int symlinkat(const char *from, int b, const char *to) { FAILS(path_below(b, to), 0); return REAL(symlinkat)(from, b, to); }
int mkdir(const char *path, mode_t mode) { FAILS(path_below(AT_FDCWD, path), 0); return REAL(mkdir)(path, mode); }
int mkdirat(int fd, const char *path, mode_t mode) { FAILS(path_below(fd, path), 0); return REAL(mkdirat)(fd, path, mode); }
int unlink(const char *path) { FAILS(path_below(AT_FDCWD, path), 1); return REAL(unlink)(path); }
int unlinkat(int fd, const char *path, int flags) { FAILS(path_below(fd, path), 1); return REAL(unlinkat)(fd, path, flags); }
int rmdir(const char *path) { FAILS(path_below(AT_FDCWD, path), 1); return REAL(rmdir)(path); }

#define OPENS(name, fd, arguments)                                              \
    do {                                                                        \
        mode_t mode = 0;                                                        \
        if (flags & (O_CREAT | O_TMPFILE)) {                                    \
            va_list more;                                                       \
            va_start(more, flags);                                              \
            mode = va_arg(more, mode_t);                                        \
            va_end(more);                                                       \
            if (flags & O_CREAT) FAILS(path_below(fd, path) && access(path, F_OK), 0); \
        }                                                                       \
        return REAL(name) arguments;                                            \
    } while (0)

int open(const char *path, int flags, ...) { OPENS(open, AT_FDCWD, (path, flags, mode)); }
int open64(const char *path, int flags, ...) { OPENS(open64, AT_FDCWD, (path, flags, mode)); }
int openat(int fd, const char *path, int flags, ...) { OPENS(openat, fd, (fd, path, flags, mode)); }
int openat64(int fd, const char *path, int flags, ...) { OPENS(openat64, fd, (fd, path, flags, mode)); }
