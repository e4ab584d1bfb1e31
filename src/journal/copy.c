/* Owns copies of a log. */
#include "journal/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

/* ---- Beside a running server ---- */

void journal_growth(struct journal *journal, struct journal_growth *ret_growth) {
  MDB_txn *txn = NULL;
  MDB_stat stat = {.ms_depth = 4};
  if (journal_read_begin(journal->env, &txn) == 0) {
    (void)mdb_stat(txn, journal->events, &stat);
    mdb_txn_abort(txn);
  }
  journal_measure(journal);
  /* The way to the last event is written anew by each commit, with the roots and the list of free pages. */
  ret_growth->file_bytes = journal->used_bytes;
  ret_growth->bytes_per_commit = ((uint64_t)stat.ms_depth + 4) * journal->page_bytes;
}

static int path_sync(const char *path) {
  cleanup(guard_close) int file = open(path, O_RDONLY | O_CLOEXEC);
  return file < 0 || fsync(file) != 0 ? errno : 0;
}

/* What a copy consists of. */
struct copy_paths {
  char *directory, *log, *data, *node_id;
};

static void copy_paths_clear(struct copy_paths *paths) {
  free(paths->directory);
  free(paths->log);
  free(paths->data);
  free(paths->node_id);
}

static bool copy_paths_make(const char *directory, struct copy_paths *paths) {
  if (asprintf(&paths->directory, "%s", directory) < 0) paths->directory = NULL;
  if (asprintf(&paths->log, "%s/log", directory) < 0) paths->log = NULL;
  if (asprintf(&paths->data, "%s/log/data.mdb", directory) < 0) paths->data = NULL;
  if (asprintf(&paths->node_id, "%s/node.id", directory) < 0) paths->node_id = NULL;
  return paths->directory != NULL && paths->log != NULL && paths->data != NULL && paths->node_id != NULL;
}

static int node_id_copy(const struct journal *journal, const struct copy_paths *paths) {
  struct id id = journal_node_id(journal);
  char text[id_chars + 1];
  id_format(&id, text);
  text[id_chars] = '\n';
  cleanup(guard_close) int file = open(paths->node_id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  errno = EIO;
  return write(file, text, sizeof text) == (ssize_t)sizeof text && fsync(file) == 0 ? 0 : errno;
}

static int copy_write(struct journal *journal, const struct copy_paths *paths) {
  if (mkdir(paths->log, 0700) != 0) return errno;
  int code = mdb_env_copy2(journal->env, paths->log, 0);
  if (code == 0 && chmod(paths->data, 0600) != 0) code = errno;
  if (code == 0) code = path_sync(paths->data);
  if (code == 0) code = node_id_copy(journal, paths);
  if (code == 0) code = path_sync(paths->log);
  return code == 0 ? path_sync(paths->directory) : code;
}

enum status journal_copy(struct journal *journal, const char *directory, struct fault *fault) {
  cleanup(copy_paths_clear) struct copy_paths paths = {0};
  if (!copy_paths_make(directory, &paths)) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  if (mkdir(directory, 0700) != 0) {
    if (errno != EEXIST) return journal_fault(fault, errno, directory, "cannot make it");
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "%.160s exists: name a new directory", directory);
  }
  int code = copy_write(journal, &paths);
  if (code == 0) return STATUS_OK;
  (void)unlink(paths.data);
  (void)unlink(paths.node_id);
  (void)rmdir(paths.log);
  (void)rmdir(directory);
  return journal_fault(fault, code, directory, "cannot write the copy");
}

/* ---- Record by record ---- */

enum status commit_take_over(struct commit *commits, struct bytes record, uint64_t seq, int64_t time_us) {
  if (commits->count == commits->capacity) {
    uint32_t capacity = commits->capacity != 0 ? commits->capacity * 2 : 1024;
    uint32_t *ends = reallocarray(commits->ends, capacity, sizeof *ends);
    if (ends == NULL) return STATUS_NO_MEMORY;
    commits->ends = ends;
    commits->capacity = capacity;
  }
  if (commits->count == 0) commits->first_seq = seq;
  must(seq == commits->first_seq + commits->count);
  size_t before = commits->records.size;
  buffer_append_bytes(&commits->records, record);
  if (commits->records.failed) {
    commits->records.size = before;
    commits->records.failed = false;
    return STATUS_NO_MEMORY;
  }
  commits->ends[commits->count++] = (uint32_t)commits->records.size;
  commits->time_us = time_us;
  return STATUS_OK;
}

static int records_put(const struct journal *journal, MDB_txn *txn, const struct commit *commits) {
  size_t start = 0;
  for (uint32_t i = 0; i < commits->count; start = commits->ends[i++]) {
    uint64_t seq = commits->first_seq + i;
    MDB_val key = seq_key(&seq), value = {commits->ends[i] - start, commits->records.data + start};
    int code = mdb_put(txn, journal->events, &key, &value, MDB_APPEND);
    if (code != 0) return code;
  }
  return 0;
}

enum status journal_take_over(struct journal *journal, const struct commit *commits, struct fault *fault) {
  MDB_txn *txn = NULL;
  struct event last = {.type = EVENT_none};
  must(!journal->read_only && !journal->marked);
  if (commits->count == 0) return STATUS_OK;
  must(commits->first_seq == journal->last_seq + 1);
  struct bytes record = commit_record(commits, commits->first_seq + commits->count - 1);
  must(record_header_decode(record, &last) == STATUS_OK && last.last_of_commit);
  int code = mdb_txn_begin(journal->env, NULL, 0, &txn);
  if (code == 0) {
    code = records_put(journal, txn, commits);
    if (code == 0) code = mdb_txn_commit(txn);
    else mdb_txn_abort(txn);
  }
  if (code != 0) {
    journal->poisoned = true;
    return journal_fault(fault, code, journal->log_path, "cannot write a commit");
  }
  journal->last_seq = last.seq;
  journal->last_chain = last.chain;
  journal->last_time_us = last.time_us;
  journal_measure(journal);
  return STATUS_OK;
}
