/* Owns the disk's misbehaviour: interposed between orbitd (and liblmdb in it) and libc with LD_PRELOAD, for the log's file
 * alone. Without a control file it does nothing. What is written and synced on several threads goes one by one. */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { unsynced_max = 65536, path_max = 4096, files_max = 1024 };

/* What stood where an unsynced write went. */
struct unsynced {
  off_t at;
  size_t size, file_size; /* of the file, before */
  void *before;
};

static struct shim_control *control;
static struct unsynced unsynced[unsynced_max];
static unsigned unsynced_count;
/* A failed sync is told to the next sync of each descriptor, as the kernel does. */
static unsigned failures, told[files_max];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv(SHIM_CONTROL);
  int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  (void)close(file);
  if (map != MAP_FAILED) control = map;
}

/* The next definition behind this library's: libc's. */
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static bool is_log(int file) {
  static const char end[] = "/log/data.mdb";
  struct stat facts;
  char link[64], path[path_max];
  if (control == NULL || fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path);
  return size >= (ssize_t)sizeof end && memcmp(path + size - (sizeof end - 1), end, sizeof end - 1) == 0;
}

static size_t file_size(int file) {
  struct stat facts;
  return fstat(file, &facts) == 0 ? (size_t)facts.st_size : 0;
}

/* True when this call is the one that is to fail; the fault is over then. */
static bool strikes(enum shim_fault fault) {
  if (atomic_load(&control->fault) != (uint32_t)fault) return false;
  uint32_t left = atomic_load(&control->countdown);
  if (left != 0) {
    atomic_store(&control->countdown, left - 1);
    return false;
  }
  atomic_store(&control->fault, SHIM_NONE);
  atomic_fetch_add(&control->happened, 1);
  return true;
}

/* ---- what is not synced yet ---- */

static void remember(int file, off_t at, size_t size) {
  if (unsynced_count == unsynced_max) abort();
  struct unsynced *entry = &unsynced[unsynced_count++];
  *entry = (struct unsynced){.at = at, .size = size, .file_size = file_size(file), .before = calloc(1, size + 1)};
  if (entry->before == NULL) abort();
  size_t got = 0;
  ssize_t more;
  while (got < size && (more = pread(file, (char *)entry->before + got, size - got, at + (off_t)got)) > 0) got += (size_t)more;
}

static void forget_all(void) {
  while (unsynced_count != 0) free(unsynced[--unsynced_count].before);
}

static uint64_t draw(uint64_t *state) { /* SplitMix64 */
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Of each write in sectors: lost or kept, as it comes; newest first, so that what stood there before all of them comes back. A
 * file that grew without a sync may be as short as before. */
static void lose(int file) {
  enum { sector_bytes = 512 };
  uint64_t state = atomic_load(&control->seed);
  bool all = draw(&state) % 2 == 0;
  size_t shortest = file_size(file);
  for (unsigned i = unsynced_count; i-- > 0;) {
    const struct unsynced *entry = &unsynced[i];
    for (size_t at = 0; at < entry->size; at += sector_bytes) {
      size_t size = entry->size - at < sector_bytes ? entry->size - at : sector_bytes;
      if (all || draw(&state) % 2 == 0)
        (void)!REAL(pwrite)(file, (const char *)entry->before + at, size, entry->at + (off_t)at);
    }
    if (entry->file_size < shortest) shortest = entry->file_size;
  }
  if (all && shortest < file_size(file)) (void)!REAL(ftruncate)(file, (off_t)shortest);
  forget_all();
}

static void cut_power(int file) {
  lose(file);
  (void)raise(SIGKILL);
}

/* ---- one write, one sync ---- */

/* How much of a write may be done; -1: none, errno is set. */
static ssize_t admit(int file, off_t at, size_t size) {
  atomic_fetch_add(&control->writes, 1);
  if (strikes(SHIM_POWER_CUT)) cut_power(file);
  if (strikes(SHIM_WRITE)) {
    errno = atomic_load(&control->error);
    return -1;
  }
  uint64_t most = atomic_load(&control->file_size_max);
  if (most != 0 && (uint64_t)at + size > most && (uint64_t)at + size > file_size(file)) {
    atomic_fetch_add(&control->refused, 1);
    if ((uint64_t)at < most) return (ssize_t)(most - (uint64_t)at);
    errno = ENOSPC;
    return -1;
  }
  return strikes(SHIM_SHORT_WRITE) && size > 1 ? (ssize_t)(size / 2) : (ssize_t)size;
}

static ssize_t write_at(int file, const void *data, size_t size, off_t at) {
  (void)pthread_mutex_lock(&lock);
  ssize_t most = admit(file, at, size);
  if (most >= 0) {
    bool durable = (fcntl(file, F_GETFL) & (O_DSYNC | O_SYNC)) != 0;
    if (!durable) remember(file, at, (size_t)most);
    most = REAL(pwrite)(file, data, (size_t)most, at);
  }
  (void)pthread_mutex_unlock(&lock);
  return most;
}

static int synced(int file, int (*real)(int)) {
  (void)pthread_mutex_lock(&lock);
  int result = 0;
  atomic_fetch_add(&control->syncs, 1);
  if (strikes(SHIM_POWER_CUT)) cut_power(file);
  if (strikes(SHIM_SYNC)) {
    lose(file);
    failures++;
  }
  if (file < files_max && told[file] != failures) {
    told[file] = failures;
    errno = atomic_load(&control->error);
    result = -1;
  } else {
    result = real(file);
    if (result == 0) forget_all();
  }
  (void)pthread_mutex_unlock(&lock);
  return result;
}

/* ---- what is interposed ---- */

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  return is_log(file) ? write_at(file, data, size, at) : REAL(pwrite)(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return pwrite(file, data, size, at); }

ssize_t write(int file, const void *data, size_t size) {
  if (!is_log(file)) return REAL(write)(file, data, size);
  off_t at = lseek(file, 0, SEEK_CUR);
  ssize_t done = write_at(file, data, size, at);
  if (done > 0) (void)lseek(file, at + done, SEEK_SET);
  return done;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
  ssize_t done = 0;
  if (!is_log(file)) return REAL(pwritev)(file, parts, count, at);
  for (int i = 0; i < count; i++) {
    ssize_t part = write_at(file, parts[i].iov_base, parts[i].iov_len, at + done);
    if (part < 0) return done != 0 ? done : -1;
    done += part;
    if ((size_t)part < parts[i].iov_len) break;
  }
  return done;
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) { return pwritev(file, parts, count, at); }

ssize_t writev(int file, const struct iovec *parts, int count) {
  if (!is_log(file)) return REAL(writev)(file, parts, count);
  off_t at = lseek(file, 0, SEEK_CUR);
  ssize_t done = pwritev(file, parts, count, at);
  if (done > 0) (void)lseek(file, at + done, SEEK_SET);
  return done;
}

int fdatasync(int file) { return is_log(file) ? synced(file, REAL(fdatasync)) : REAL(fdatasync)(file); }
int fsync(int file) { return is_log(file) ? synced(file, REAL(fsync)) : REAL(fsync)(file); }

/* A write to the file's map would go past all of this: the log is never mapped for writing, and this holds it to that. */
int msync(void *map, size_t size, int flags) {
  if (control != NULL) abort();
  return REAL(msync)(map, size, flags);
}

int ftruncate(int file, off_t size) {
  if (is_log(file) && atomic_load(&control->file_size_max) != 0 && (uint64_t)size > atomic_load(&control->file_size_max)) {
    errno = ENOSPC;
    return -1;
  }
  return REAL(ftruncate)(file, size);
}

int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int posix_fallocate(int file, off_t at, off_t size) {
  uint64_t most = control != NULL ? atomic_load(&control->file_size_max) : 0;
  if (most != 0 && (uint64_t)at + (uint64_t)size > most && is_log(file)) return ENOSPC;
  return REAL(posix_fallocate)(file, at, size);
}

int fallocate(int file, int mode, off_t at, off_t size) {
  uint64_t most = control != NULL ? atomic_load(&control->file_size_max) : 0;
  if (most != 0 && (uint64_t)at + (uint64_t)size > most && is_log(file)) {
    errno = ENOSPC;
    return -1;
  }
  return REAL(fallocate)(file, mode, at, size);
}
