/* Owns the making of a new data directory. */
#include "replay/out.h"

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

int out_begin(struct out *out, const char *path) {
  struct stat found;
  *out = (struct out){.path = path};
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--;
  if (size == 0) return tool_say(exit_misuse, "say where to write: OUT is empty");
  if (asprintf(&out->work, "%.*s.new", (int)size, path) < 0) {
    out->work = NULL;
    return tool_say(exit_cannot_run, "out of memory");
  }
  if (lstat(path, &found) == 0) return tool_say(exit_finding, "%s exists: name a new directory", path);
  if (lstat(out->work, &found) == 0) return tool_say(exit_finding, "%s is left from an interrupted run: remove it", out->work);
  return exit_done;
}

static int parent_sync(const char *path) {
  cleanup(guard_free) char *copy = strdup(path);
  if (copy == NULL) return ENOMEM;
  cleanup(guard_close) int directory = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return directory < 0 || fsync(directory) != 0 ? errno : 0;
}

int out_keep(struct out *out) {
  int code = renameat2(AT_FDCWD, out->work, AT_FDCWD, out->path, RENAME_NOREPLACE) != 0 ? errno : 0;
  /* Not every file system knows the flag; then an empty directory of that name may be replaced, and nothing else. */
  if (code == EINVAL && rename(out->work, out->path) == 0) code = 0;
  if (code == 0) code = parent_sync(out->work);
  if (code == 0) return exit_done;
  return tool_say(exit_cannot_run, "%s cannot be renamed to %s: %s", out->work, out->path, strerror(code));
}

void out_drop(const struct out *out) {
  static const char *const names[] = {"log/data.mdb", "log/lock.mdb", "log", "LOCK", "node.id"};
  char path[4096];
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    int length = snprintf(path, sizeof path, "%s/%s", out->work, names[i]);
    if (length > 0 && (size_t)length < sizeof path) (void)remove(path);
  }
  (void)rmdir(out->work);
}

void out_clear(struct out *out) {
  free(out->work);
  out->work = NULL;
}
