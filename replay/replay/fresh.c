/* Owns the making of a new data directory. */
#include "replay/fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "reading/tool.h"

int fresh_begin(struct fresh *fresh, const char *path) {
  struct stat found;
  *fresh = (struct fresh){.path = path};
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--;
  if (size == 0) return tool_say(exit_misuse, "say where to write: OUT is empty");
  if (asprintf(&fresh->work, "%.*s.new", (int)size, path) < 0) {
    fresh->work = NULL;
    return tool_say(exit_cannot_run, "out of memory");
  }
  if (lstat(path, &found) == 0) return tool_say(exit_finding, "%s exists: name a new directory", path);
  if (lstat(fresh->work, &found) == 0)
    return tool_say(exit_finding, "%s is left from an interrupted run: remove it", fresh->work);
  return exit_done;
}

static int parent_sync(const char *path) {
  cleanup(guard_free) char *copy = strdup(path);
  if (copy == NULL) return ENOMEM;
  /* The cleanup frees it. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
  cleanup(guard_close) int directory = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return directory < 0 || fsync(directory) != 0 ? errno : 0;
}

int fresh_keep(struct fresh *fresh) {
  int code = renameat2(AT_FDCWD, fresh->work, AT_FDCWD, fresh->path, RENAME_NOREPLACE) != 0 ? errno : 0;
  /* Not every file system knows the flag; then an empty directory of that name may be replaced, and nothing else. */
  if (code == EINVAL && rename(fresh->work, fresh->path) == 0) code = 0;
  if (code == 0) code = parent_sync(fresh->work);
  if (code == 0) return exit_done;
  return tool_say(exit_cannot_run, "%s cannot be renamed to %s: %s", fresh->work, fresh->path, strerror(code));
}

void fresh_drop(const struct fresh *fresh) {
  static const char *const names[] = {"log/data.mdb", "log/lock.mdb", "log", "LOCK", "node.id"};
  char path[4096];
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    int length = snprintf(path, sizeof path, "%s/%s", fresh->work, names[i]);
    if (length > 0 && (size_t)length < sizeof path) (void)remove(path);
  }
  (void)rmdir(fresh->work);
}

void fresh_clear(struct fresh *fresh) {
  free(fresh->work);
  fresh->work = NULL;
}
