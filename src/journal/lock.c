/* Owns DATA/LOCK, which one server holds, and DATA/node.id. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

/* The pid that the holder wrote; 0: not known. */
static long lock_holder(int lock) {
  char text[24] = "";
  ssize_t got = pread(lock, text, sizeof text - 1, 0);
  char *end = NULL;
  long pid = got > 0 ? strtol(text, &end, 10) : 0;
  return pid > 0 && end != NULL && *end == '\n' ? pid : 0;
}

enum status lock_take(struct journal *journal, struct fault *fault) {
  cleanup(guard_close) int lock = openat(journal->directory, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return journal_fault(fault, errno, journal->data_path, "cannot open LOCK in it");
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return journal_fault(fault, errno, journal->data_path, "cannot lock LOCK in it");
    long pid = lock_holder(lock);
    char holder[40] = "another server";
    if (pid != 0) (void)snprintf(holder, sizeof holder, "the server with pid %ld", pid);
    return fault_set(fault, STATUS_LOCKED, NULL, "%.160s is in use by %s: stop it first, or name another data directory",
                     journal->data_path, holder);
  }
  journal->lock = lock;
  lock = -1;
  return STATUS_OK;
}

/* The pid only helps people: it is worth no refusal when it cannot be written. */
void lock_sign(const struct journal *journal) {
  char text[24];
  int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(journal->lock, 0) != 0 || pwrite(journal->lock, text, (size_t)length, 0) != length)
    (void)ftruncate(journal->lock, 0);
}

void lock_release(struct journal *journal) {
  if (journal->lock < 0) return;
  (void)!ftruncate(journal->lock, 0);
  (void)close(journal->lock);
  journal->lock = -1;
}

enum status node_id_read(const struct journal *journal, struct id *ret_id, struct fault *fault) {
  cleanup(guard_close) int file = openat(journal->directory, "node.id", O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return STATUS_NOT_FOUND;
  if (file < 0) return journal_fault(fault, errno, journal->data_path, "cannot open node.id in it");
  char text[id_chars + 2];
  ssize_t got = read(file, text, sizeof text);
  if (got < 0) return journal_fault(fault, errno, journal->data_path, "cannot read node.id in it");
  if (got == id_chars + 1 && text[id_chars] == '\n' && id_parse(bytes_of(text, id_chars), ret_id)) return STATUS_OK;
  return fault_set(fault, STATUS_CORRUPT, NULL,
                   "%.160s/node.id is not 32 hexadecimal digits and a line end: remove it, and the log's own is written again",
                   journal->data_path);
}

/* Written aside and renamed: it is there whole or not at all. */
enum status node_id_write(const struct journal *journal, const struct id *id, struct fault *fault) {
  char text[id_chars + 1];
  id_format(id, text);
  text[id_chars] = '\n';
  cleanup(guard_close) int file = openat(journal->directory, "node.id.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return journal_fault(fault, errno, journal->data_path, "cannot make node.id in it");
  errno = EIO;
  if (write(file, text, sizeof text) == (ssize_t)sizeof text && fsync(file) == 0 &&
      renameat(journal->directory, "node.id.new", journal->directory, "node.id") == 0 && fsync(journal->directory) == 0)
    return STATUS_OK;
  int code = errno;
  (void)unlinkat(journal->directory, "node.id.new", 0);
  return journal_fault(fault, code, journal->data_path, "cannot write node.id in it");
}
