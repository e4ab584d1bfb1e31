/* Owns opening and closing a journal: the order of its checks, so that a refusal changes nothing, and the texts of refusals. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

MDB_val meta_key(const char *name) { return (MDB_val){strlen(name), (void *)(uintptr_t)name}; }

/* What the person at the terminal can do about it. */
static const char *advice(enum status status) {
  switch (status) {
    case STATUS_NOT_FOUND:
      return "check the path";
    case STATUS_PERMISSION_DENIED:
      return "check owner and mode of the data directory";
    case STATUS_NO_SPACE:
      return "make room on the disk, or raise --map-size when that is full";
    case STATUS_NO_MEMORY:
      return "raise the limit on address space (ulimit -v) or lower --map-size";
    case STATUS_UNAVAILABLE:
      return "end some of the tools that read this log";
    case STATUS_FOREIGN:
      return "use the version of Orbit that made it";
    case STATUS_CORRUPT:
      return "run orbit-replay verify, then salvage, or put back a backup";
    default:
      return "check whether the disk is full or broken (dmesg)";
  }
}

enum status journal_fault(struct fault *fault, int code, const char *path, const char *doing) {
  enum status status = journal_error(code);
  return fault_set(fault, status, NULL, "%.160s: %s: %s; %s", path, doing, mdb_strerror(code), advice(status));
}

int journal_env_open(const char *directory, uint64_t map_bytes, unsigned flags, MDB_env **ret_env) {
  MDB_env *env = NULL;
  int code = mdb_env_create(&env);
  if (code != 0) return code;
  code = mdb_env_set_maxdbs(env, 2);
  if (code == 0) code = mdb_env_set_maxreaders(env, log_readers_max);
  if (code == 0 && map_bytes != 0) code = mdb_env_set_mapsize(env, map_bytes);
  if (code == 0) code = mdb_env_open(env, directory, flags | MDB_NOTLS, 0600);
  if (code != 0) mdb_env_close(env);
  else *ret_env = env;
  return code;
}

void journal_measure(struct journal *journal) {
  MDB_envinfo info;
  int code = mdb_env_info(journal->env, &info);
  must(code == 0);
  uint64_t used = ((uint64_t)info.me_last_pgno + 1) * journal->page_bytes;
  journal->used_bytes = used;
  if (journal->file_bytes < used) journal->file_bytes = used;
}

static enum status foreign(const struct journal *journal, struct fault *fault, const char *what) {
  return fault_set(fault, STATUS_FOREIGN, NULL, "%.160s: %s; nothing was changed", journal->log_path, what);
}

static enum status meta_read(struct journal *journal, MDB_txn *txn, struct fault *fault) {
  MDB_val key = meta_key("format"), value;
  int code = mdb_get(txn, journal->meta, &key, &value);
  if (code == MDB_NOTFOUND || (code == 0 && value.mv_size != sizeof(uint32_t)))
    return foreign(journal, fault, "it has no format version, so it is no log of Orbit: name the right data directory");
  if (code != 0) return journal_fault(fault, code, journal->log_path, "cannot read the format version");
  uint32_t format;
  memcpy(&format, value.mv_data, sizeof format);
  if (le32toh(format) != log_format)
    return fault_set(fault, STATUS_FOREIGN, NULL,
                     "%.160s has format version %" PRIu32 ", this program reads version %" PRIu32
                     ": use the version of Orbit that made it; nothing was changed",
                     journal->log_path, le32toh(format), log_format);
  key = meta_key("genesis");
  code = mdb_get(txn, journal->meta, &key, &value);
  if (code == MDB_NOTFOUND) return foreign(journal, fault, "it has no genesis: put back a backup");
  if (code != 0) return journal_fault(fault, code, journal->log_path, "cannot read genesis");
  enum status status = genesis_check(bytes_of(value.mv_data, value.mv_size), journal->log_path, fault);
  if (status != STATUS_OK) return status;
  memcpy(&journal->genesis, value.mv_data, sizeof journal->genesis);
  key = meta_key("clean");
  code = mdb_get(txn, journal->meta, &key, &value);
  if (code != 0 && code != MDB_NOTFOUND) return journal_fault(fault, code, journal->log_path, "cannot read the clean mark");
  journal->marked = code == 0;
  uint64_t seq = 0;
  if (journal->marked && value.mv_size == sizeof seq) memcpy(&seq, value.mv_data, sizeof seq);
  journal->was_clean = journal->marked && value.mv_size == sizeof seq && le64toh(seq) == journal->last_seq;
  return STATUS_OK;
}

/* Finds the end of the log. Offline tools are shown a damaged last record by replay instead of being refused. */
static enum status end_read(struct journal *journal, MDB_cursor *cursor, struct fault *fault) {
  MDB_val key, value;
  struct event last;
  uint64_t seq;
  journal->last_seq = 0;
  int code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  if (code == MDB_NOTFOUND) return STATUS_OK;
  if (code != 0) return journal_fault(fault, code, journal->log_path, "cannot read the last event");
  if (key.mv_size != sizeof seq) return foreign(journal, fault, "its events are not numbered as Orbit numbers them");
  memcpy(&seq, key.mv_data, sizeof seq);
  journal->last_seq = seq;
  enum status status = record_header_decode(bytes_of(value.mv_data, value.mv_size), &last);
  if (status == STATUS_OK && last.seq == seq && last.last_of_commit) {
    journal->last_chain = last.chain;
    journal->last_time_us = last.time_us;
    return STATUS_OK;
  }
  if (journal->read_only) return STATUS_OK;
  return fault_set(fault, STATUS_CORRUPT, NULL,
                   "%.160s: seq %" PRIu64
                   ", the last one, is damaged or not the end of a commit: run orbit-replay verify, then "
                   "salvage, or put back a backup; nothing was changed",
                   journal->log_path, seq);
}

/* The first record must follow from genesis: else one of them comes from another log. */
static enum status start_check(const struct journal *journal, MDB_cursor *cursor, struct fault *fault) {
  MDB_val key, value;
  struct event first;
  if (journal->last_seq == 0 || journal->read_only) return STATUS_OK;
  int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
  if (code != 0) return journal_fault(fault, code, journal->log_path, "cannot read the first event");
  struct bytes record = bytes_of(value.mv_data, value.mv_size);
  if (record_header_decode(record, &first) != STATUS_OK || first.seq != 1) return STATUS_OK; /* replay names it */
  if (record_chain(record, genesis_chain(&journal->genesis)) == first.chain) return STATUS_OK;
  return foreign(journal, fault,
                 "seq 1 does not follow from genesis: genesis is of another log, or seq 1 is damaged: put back a backup");
}

static enum status contents_read(struct journal *journal, MDB_txn *txn, struct fault *fault) {
  unsigned flags = 0;
  MDB_cursor *cursor = NULL;
  int code = mdb_dbi_open(txn, "meta", 0, &journal->meta);
  if (code == 0) code = mdb_dbi_open(txn, "events", MDB_INTEGERKEY, &journal->events);
  if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE)
    return foreign(journal, fault, "it is an LMDB environment, but no log of Orbit: name the right data directory");
  if (code == 0) code = mdb_dbi_flags(txn, journal->events, &flags);
  if (code == 0 && flags != MDB_INTEGERKEY) return foreign(journal, fault, "its events are not kept as Orbit keeps them");
  if (code == 0) code = mdb_cursor_open(txn, journal->events, &cursor);
  if (code != 0) return journal_fault(fault, code, journal->log_path, "cannot read it");
  enum status status = end_read(journal, cursor, fault);
  if (status == STATUS_OK) status = meta_read(journal, txn, fault);
  if (status == STATUS_OK && journal->last_seq == 0) journal->last_chain = genesis_chain(&journal->genesis);
  if (status == STATUS_OK) status = start_check(journal, cursor, fault);
  mdb_cursor_close(cursor);
  return status;
}

/* Opens the environment and reads what stands in meta and at the ends of events. */
static enum status log_attach(struct journal *journal, unsigned flags, struct fault *fault) {
  MDB_txn *txn = NULL;
  int code = journal_env_open(journal->log_path, journal->map_bytes, flags, &journal->env);
  if (code == 0) code = journal_read_begin(journal->env, &txn);
  if (code != 0) return journal_fault(fault, code, journal->log_path, "cannot open it");
  enum status status = contents_read(journal, txn, fault);
  if (status != STATUS_OK) {
    mdb_txn_abort(txn);
    return status;
  }
  code = mdb_txn_commit(txn); /* keeps the handles of both databases */
  return code != 0 ? journal_fault(fault, code, journal->log_path, "cannot open it") : STATUS_OK;
}

static enum status node_id_settle(struct journal *journal, struct fault *fault) {
  struct id own = journal_node_id(journal), found;
  enum status status = node_id_read(journal, &found, fault);
  if (status == STATUS_NOT_FOUND) return journal->read_only ? STATUS_OK : node_id_write(journal, &own, fault);
  if (status != STATUS_OK || id_equal(&own, &found)) return status;
  return fault_set(
      fault, STATUS_FOREIGN, NULL,
      "%.100s/node.id says %s, its log was made by node %s: put the right log there, or remove node.id to go on as "
      "that node; nothing was changed",
      journal->data_path, id_text(&found).text, id_text(&own).text);
}

/* DATA itself: made when asked for, judged, and held open. */
static enum status directory_open(struct journal *journal, bool create, struct fault *fault) {
  const char *path = journal->data_path;
  if (create && mkdir(path, 0700) == 0) {
    cleanup(guard_close) int parent = -1;
    cleanup(guard_free) char *up = NULL;
    if (asprintf(&up, "%s/..", path) < 0) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
    parent = open(up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fsync(parent) != 0) return journal_fault(fault, errno, path, "cannot sync the directory above it");
  } else if (create && errno != EEXIST) {
    return journal_fault(fault, errno, path, "cannot make the data directory");
  }
  enum status status = directory_inspect(path, !journal->read_only, fault);
  if (status != STATUS_OK) return status;
  journal->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return journal->directory < 0 ? journal_fault(fault, errno, path, "cannot open it") : STATUS_OK;
}

/* Everything that can refuse comes before anything that changes the log. */
static enum status open_in_order(struct journal *journal, const struct journal_options *options, struct fault *fault) {
  enum status status = directory_open(journal, options->create, fault);
  if (status != STATUS_OK) return status;
  status = log_file_inspect(journal, fault);
  if (status == STATUS_NOT_FOUND && !options->create)
    return fault_set(fault, status, NULL,
                     "%.160s holds no log: name the right data directory, or make a log with orbitctl init",
                     journal->data_path);
  if (status != STATUS_OK && status != STATUS_NOT_FOUND) return status;
  if (journal->read_only) {
    status = log_attach(journal, MDB_RDONLY, fault);
    return status != STATUS_OK ? status : node_id_settle(journal, fault);
  }
  status = lock_take(journal, fault);
  if (status == STATUS_OK) status = log_file_inspect(journal, fault); /* again: only now nobody else can change it */
  if (status == STATUS_NOT_FOUND) status = genesis_create(journal, options->genesis, fault);
  /* Looked at without a trace first: the true opening writes lock.mdb. */
  if (status == STATUS_OK) status = log_attach(journal, MDB_RDONLY | MDB_NOLOCK, fault);
  if (status != STATUS_OK) return status;
  mdb_env_close(journal->env);
  journal->env = NULL;
  status = node_id_settle(journal, fault);
  if (status == STATUS_OK) status = log_attach(journal, 0, fault);
  if (status == STATUS_OK) lock_sign(journal);
  return status;
}

static void journal_free(struct journal *journal) {
  if (journal->env != NULL) mdb_env_close(journal->env);
  lock_release(journal);
  guard_close(&journal->directory);
  guard_close(&journal->room_file);
  sodium_memzero(&journal->genesis, sizeof journal->genesis);
  free(journal->zeroes);
  free(journal->data_path);
  free(journal->log_path);
  free(journal);
}

enum status journal_open(const char *data_directory, const struct journal_options *options, struct journal **ret_journal,
                         struct fault *fault) {
  must(!(options->read_only && options->create));
  if (sodium_init() < 0) return fault_set(fault, STATUS_IO_ERROR, NULL, "the kernel gives no random bytes");
  struct journal *journal = guard_calloc(1, sizeof *journal);
  journal->directory = journal->lock = journal->room_file = -1;
  journal->read_only = options->read_only;
  journal->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
  journal->reserve_bytes = options->reserve_bytes != 0 ? options->reserve_bytes : log_reserve_step_bytes;
  journal->map_bytes = options->map_bytes;
  /* A tool takes the map that the server wrote down. */
  if (journal->map_bytes == 0 && !journal->read_only) journal->map_bytes = log_map_bytes_default;
  enum status status = STATUS_OK;
  if (asprintf(&journal->data_path, "%s", data_directory) < 0) journal->data_path = NULL;
  if (asprintf(&journal->log_path, "%s/log", data_directory) < 0) journal->log_path = NULL;
  if (journal->data_path == NULL || journal->log_path == NULL)
    status = fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  if (status == STATUS_OK) status = open_in_order(journal, options, fault);
  if (status != STATUS_OK) {
    journal_free(journal);
    return status;
  }
  mdb_filehandle_t file;
  struct stat found;
  MDB_envinfo info;
  int code = mdb_env_get_fd(journal->env, &file);
  must(code == 0);
  code = mdb_env_info(journal->env, &info);
  must(code == 0);
  journal->map_bytes = info.me_mapsize;
  journal->file_bytes = fstat(file, &found) == 0 ? (uint64_t)found.st_size : 0;
  journal_measure(journal);
  journal->handed_seq = journal->last_seq;
  journal->handed_chain = journal->last_chain;
  journal->handed_time_us = journal->last_time_us;
  *ret_journal = journal;
  return STATUS_OK;
}

/* The mark is a convenience for the next start: a failure to write it is a start after a crash, no more. */
static void mark_write(struct journal *journal) {
  MDB_txn *txn = NULL;
  uint64_t seq = htole64(journal->last_seq);
  MDB_val key = meta_key("clean"), value = {sizeof seq, &seq};
  if (mdb_txn_begin(journal->env, NULL, 0, &txn) != 0) return;
  if (mdb_put(txn, journal->meta, &key, &value, 0) == 0) (void)mdb_txn_commit(txn);
  else mdb_txn_abort(txn);
}

void journal_close(struct journal *journal, bool clean) {
  if (journal == NULL) return;
  writer_stop(journal);
  room_stop(journal);
  if (clean && !journal->read_only && !journal->poisoned && !(journal->marked && journal->was_clean)) mark_write(journal);
  journal_free(journal);
}

const struct secret *journal_secret(const struct journal *journal) { return &journal->genesis.secret; }
int64_t journal_created_us(const struct journal *journal) { return (int64_t)le64toh(journal->genesis.created_us); }
struct bytes journal_genesis(const struct journal *journal) {
  return bytes_of(&journal->genesis, sizeof journal->genesis);
}
bool journal_was_clean(const struct journal *journal) { return journal->was_clean; }

struct id journal_node_id(const struct journal *journal) {
  struct id id;
  memcpy(id.bytes, journal->genesis.node_id, sizeof id.bytes);
  return id;
}

void journal_reap_readers(struct journal *journal) {
  int dead;
  (void)mdb_reader_check(journal->env, &dead);
}
