/* Owns the environment in which views are kept, and what is said when it cannot be used. */
#include "journal/views_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

struct views {
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi tables[views_tables_max];
  unsigned table_count;
  bool read_only;
  char *path;
};

static enum status views_fault(struct fault *fault, int code, const char *path, const char *doing) {
  return fault_set(fault, journal_error(code), NULL, "%.160s: %s: %s", path, doing, mdb_strerror(code));
}

static MDB_val val_of(struct bytes bytes) { return (MDB_val){bytes.size, (void *)(uintptr_t)bytes.data}; }

/* What its pages need, and what the file has. An LMDB code. */
static int measure(const struct views *views, mdb_filehandle_t *ret_file, uint64_t *ret_needed, uint64_t *ret_found) {
  MDB_envinfo info;
  MDB_stat pages;
  struct stat file;
  int code = mdb_env_get_fd(views->env, ret_file);
  if (code == 0) code = mdb_env_info(views->env, &info);
  if (code == 0) code = mdb_env_stat(views->env, &pages);
  if (code == 0 && fstat(*ret_file, &file) != 0) code = errno;
  if (code != 0) return code;
  if (__builtin_mul_overflow((uint64_t)info.me_last_pgno + 1, pages.ms_psize, ret_needed)) return MDB_CORRUPTED;
  *ret_found = (uint64_t)file.st_size;
  return 0;
}

/* A file that ends before its pages do would kill whoever reads them. */
static enum status length_check(const struct views *views, struct fault *fault) {
  mdb_filehandle_t file;
  uint64_t needed, found;
  int code = measure(views, &file, &needed, &found);
  if (code != 0) return views_fault(fault, code, views->path, "cannot measure it");
  if (needed <= found) return STATUS_OK;
  return fault_set(fault, STATUS_CORRUPT, NULL, "%.160s: its file ends before its pages do", views->path);
}

/* LMDB leaves free pages at the end unwritten: the file is made as long as length_check wants it. If this fails, the store is
 * not believed at its next opening, no more. */
static void length_settle(const struct views *views) {
  mdb_filehandle_t file;
  uint64_t needed, found;
  if (measure(views, &file, &needed, &found) == 0 && found < needed) (void)(ftruncate(file, (off_t)needed) == 0);
}

/* Whoever was making it did not get so far as to make the tables. */
static bool is_empty(const struct views *views) {
  MDB_stat stat;
  return mdb_env_stat(views->env, &stat) == 0 && stat.ms_entries == 0;
}

/* How many transactions and snapshots the thread has open, those that are being begun or ended included. */
static _Thread_local volatile unsigned open_here;
bool views_are_open_here(void) { return open_here > 0; }

static enum status tables_open(struct views *views, const struct views_options *options, struct fault *fault) {
  MDB_txn *txn = NULL;
  int code = mdb_txn_begin(views->env, NULL, options->read_only ? MDB_RDONLY : 0, &txn);
  if (code != 0) return views_fault(fault, code, views->path, "cannot begin to read it");
  open_here++;
  for (unsigned i = 0; i < options->table_count && code == 0; i++)
    code = mdb_dbi_open(txn, options->tables[i], options->read_only ? 0 : MDB_CREATE, &views->tables[i]);
  if (code != 0) mdb_txn_abort(txn);
  else code = mdb_txn_commit(txn);
  open_here--;
  if (code == MDB_NOTFOUND && is_empty(views))
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "%.160s: nothing is in it yet", views->path);
  if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE || code == MDB_DBS_FULL)
    return fault_set(fault, STATUS_FOREIGN, NULL, "%.160s: it has not the tables of this version", views->path);
  return code == 0 ? STATUS_OK : views_fault(fault, code, views->path, "cannot open its tables");
}

static enum status env_open(struct views *views, const struct views_options *options, struct fault *fault) {
  if (!options->read_only && mkdir(views->path, 0700) != 0 && errno != EEXIST)
    return views_fault(fault, errno, views->path, "cannot make the directory");
  int code = mdb_env_create(&views->env);
  if (code == 0) code = mdb_env_set_maxdbs(views->env, views_tables_max);
  if (code == 0 && options->map_bytes != 0) code = mdb_env_set_mapsize(views->env, options->map_bytes);
  if (code == 0) code = mdb_env_open(views->env, views->path, MDB_NOTLS | (options->read_only ? MDB_RDONLY : 0), 0600);
  if (code != 0) return views_fault(fault, code, views->path, "cannot open it");
  enum status status = length_check(views, fault);
  return status == STATUS_OK ? tables_open(views, options, fault) : status;
}

enum status views_open(const char *directory, const struct views_options *options, struct views **ret_views,
                       struct fault *fault) {
  must(options->table_count <= views_tables_max);
  struct views *views = guard_calloc(1, sizeof *views);
  views->table_count = options->table_count;
  views->read_only = options->read_only;
  if (asprintf(&views->path, "%s", directory) < 0) views->path = NULL;
  enum status status =
      views->path != NULL ? env_open(views, options, fault) : fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  if (status != STATUS_OK) {
    views_close(views);
    return status;
  }
  *ret_views = views;
  return STATUS_OK;
}

void views_close(struct views *views) {
  if (views == NULL) return;
  views_abort(views);
  if (views->env != NULL) mdb_env_close(views->env);
  free(views->path);
  free(views);
}

enum status views_remove(const char *directory) {
  static const char *const names[] = {"data.mdb", "lock.mdb"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    cleanup(guard_free) char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, names[i]) < 0) return STATUS_NO_MEMORY;
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR) return journal_error(errno);
  }
  (void)rmdir(directory);
  return STATUS_OK;
}

enum status views_begin(struct views *views, bool write, struct fault *fault) {
  must(views->txn == NULL);
  int dead;
  open_here++;
  if (write) (void)mdb_reader_check(views->env, &dead);
  int code = mdb_txn_begin(views->env, NULL, write ? 0 : MDB_RDONLY, &views->txn);
  if (code == 0) return STATUS_OK;
  open_here--;
  views->txn = NULL;
  return views_fault(fault, code, views->path, "cannot begin a transaction");
}

enum status views_commit(struct views *views, struct fault *fault) {
  must(views->txn != NULL);
  int code = mdb_txn_commit(views->txn);
  views->txn = NULL;
  open_here--;
  if (code != 0) return views_fault(fault, code, views->path, "cannot write it");
  if (!views->read_only) length_settle(views);
  return STATUS_OK;
}

void views_abort(struct views *views) {
  if (views->txn == NULL) return;
  mdb_txn_abort(views->txn);
  views->txn = NULL;
  open_here--;
}

enum status views_get(struct views *views, unsigned table, struct bytes key, struct bytes *ret_value) {
  must(views->txn != NULL && table < views->table_count);
  MDB_val at = val_of(key), value;
  int code = mdb_get(views->txn, views->tables[table], &at, &value);
  if (code == MDB_NOTFOUND) return STATUS_END;
  if (code != 0) return journal_error(code);
  *ret_value = bytes_of(value.mv_data, value.mv_size);
  return STATUS_OK;
}

enum status views_put(struct views *views, unsigned table, struct bytes key, struct bytes value, bool append) {
  must(views->txn != NULL && table < views->table_count);
  MDB_val at = val_of(key), to = val_of(value);
  int code = mdb_put(views->txn, views->tables[table], &at, &to, append ? MDB_APPEND : 0);
  if (append && code == MDB_KEYEXIST) {
    to = val_of(value);
    code = mdb_put(views->txn, views->tables[table], &at, &to, 0);
  }
  return code == 0 ? STATUS_OK : journal_error(code);
}

enum status views_delete(struct views *views, unsigned table, struct bytes key) {
  must(views->txn != NULL && table < views->table_count);
  MDB_val at = val_of(key);
  int code = mdb_del(views->txn, views->tables[table], &at, NULL);
  return code == 0 || code == MDB_NOTFOUND ? STATUS_OK : journal_error(code);
}

uint64_t views_count(struct views *views, unsigned table) {
  must(views->txn != NULL && table < views->table_count);
  MDB_stat stat;
  return mdb_stat(views->txn, views->tables[table], &stat) == 0 ? stat.ms_entries : 0;
}

enum status views_each(struct views *views, unsigned table, views_visit *visit, void *context) {
  must(views->txn != NULL && table < views->table_count);
  MDB_cursor *cursor;
  MDB_val key, value;
  enum status status = STATUS_OK;
  int code = mdb_cursor_open(views->txn, views->tables[table], &cursor);
  if (code != 0) return journal_error(code);
  for (code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); code == 0 && status == STATUS_OK;
       code = status == STATUS_OK ? mdb_cursor_get(cursor, &key, &value, MDB_NEXT) : 0)
    status = visit(context, bytes_of(key.mv_data, key.mv_size), bytes_of(value.mv_data, value.mv_size));
  mdb_cursor_close(cursor);
  if (status != STATUS_OK) return status;
  return code == MDB_NOTFOUND ? STATUS_OK : journal_error(code);
}

/* ---- one row by its place ---- */

/* The first row at or behind key, or the last before it. An LMDB code. */
static int seek(MDB_txn *txn, MDB_dbi table, struct bytes key, bool below, struct bytes *ret_key, struct bytes *ret_value) {
  MDB_cursor *cursor;
  MDB_val at = val_of(key), value;
  int code = mdb_cursor_open(txn, table, &cursor);
  if (code != 0) return code;
  code = mdb_cursor_get(cursor, &at, &value, MDB_SET_RANGE);
  if (below && code == 0) code = mdb_cursor_get(cursor, &at, &value, MDB_PREV);
  else if (below && code == MDB_NOTFOUND) code = mdb_cursor_get(cursor, &at, &value, MDB_LAST);
  mdb_cursor_close(cursor);
  if (code != 0) return code;
  *ret_key = bytes_of(at.mv_data, at.mv_size);
  *ret_value = bytes_of(value.mv_data, value.mv_size);
  return 0;
}

static enum status seek_status(int code) {
  if (code == MDB_NOTFOUND) return STATUS_END;
  return code == 0 ? STATUS_OK : journal_error(code);
}

enum status views_from(struct views *views, unsigned table, struct bytes key, struct bytes *ret_key, struct bytes *ret_value) {
  must(views->txn != NULL && table < views->table_count);
  return seek_status(seek(views->txn, views->tables[table], key, false, ret_key, ret_value));
}

/* ---- readers ---- */

struct views_reader {
  struct views *views;
  MDB_txn *txn;
  bool reading;
};

enum status views_reader_new(struct views *views, struct views_reader **ret_reader, struct fault *fault) {
  struct views_reader *reader = guard_calloc(1, sizeof *reader);
  reader->views = views;
  int code = mdb_txn_begin(views->env, NULL, MDB_RDONLY, &reader->txn);
  if (code != 0) {
    free(reader);
    return views_fault(fault, code, views->path, "cannot be read beside its writer");
  }
  mdb_txn_reset(reader->txn);
  *ret_reader = reader;
  return STATUS_OK;
}

void views_reader_free(struct views_reader *reader) {
  if (reader == NULL) return;
  mdb_txn_abort(reader->txn);
  free(reader);
}

enum status views_reader_begin(struct views_reader *reader) {
  must(!reader->reading);
  int code = mdb_txn_renew(reader->txn);
  reader->reading = code == 0;
  if (code == 0) open_here++;
  return code == 0 ? STATUS_OK : journal_error(code);
}

void views_reader_end(struct views_reader *reader) {
  if (!reader->reading) return;
  mdb_txn_reset(reader->txn);
  reader->reading = false;
  open_here--;
}

enum status views_reader_get(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_value) {
  must(reader->reading && table < reader->views->table_count);
  MDB_val at = val_of(key), value;
  int code = mdb_get(reader->txn, reader->views->tables[table], &at, &value);
  if (code == 0) *ret_value = bytes_of(value.mv_data, value.mv_size);
  return seek_status(code);
}

enum status views_reader_from(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_key,
                              struct bytes *ret_value) {
  must(reader->reading && table < reader->views->table_count);
  return seek_status(seek(reader->txn, reader->views->tables[table], key, false, ret_key, ret_value));
}

enum status views_reader_below(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_key,
                               struct bytes *ret_value) {
  must(reader->reading && table < reader->views->table_count);
  return seek_status(seek(reader->txn, reader->views->tables[table], key, true, ret_key, ret_value));
}
