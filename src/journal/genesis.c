/* Owns genesis: how a log is made, and whether the genesis that was found is whole and of this program's format. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/guard.h"
#include "journal/internal.h"

uint64_t genesis_chain(const struct genesis *genesis) { return XXH3_64bits(genesis, sizeof *genesis); }

static void check_make(const struct genesis *genesis, uint8_t out[sizeof genesis->check]) {
  int done = crypto_generichash(out, sizeof genesis->check, (const uint8_t *)genesis, offsetof(struct genesis, secret),
                                genesis->secret.bytes, sizeof genesis->secret.bytes);
  must(done == 0);
}

enum status genesis_check(struct bytes bytes, const char *path, struct fault *fault) {
  struct genesis genesis;
  uint8_t check[sizeof genesis.check];
  if (bytes.size != sizeof genesis)
    return fault_set(fault, STATUS_CORRUPT, NULL,
                     "%.160s: genesis has %zu bytes instead of %zu: put back a backup; nothing was changed", path, bytes.size,
                     sizeof genesis);
  memcpy(&genesis, bytes.data, sizeof genesis);
  check_make(&genesis, check);
  if (memcmp(check, genesis.check, sizeof check) != 0 || le32toh(genesis.format) != log_format)
    return fault_set(fault, STATUS_FOREIGN, NULL,
                     "%.160s: genesis does not fit its own check value, it was changed or damaged: put back a backup; nothing "
                     "was changed",
                     path);
  if (le32toh(genesis.page_bytes) != (uint32_t)sysconf(_SC_PAGESIZE))
    return fault_set(fault, STATUS_FOREIGN, NULL,
                     "%.160s was made with pages of %" PRIu32
                     " bytes, this machine's have %ld: open it on a machine like the one "
                     "it was made on",
                     path, le32toh(genesis.page_bytes), sysconf(_SC_PAGESIZE));
  return STATUS_OK;
}

/* A genesis for this machine. A node id that the directory has already is kept. */
static enum status genesis_make(const struct journal *journal, struct genesis *ret_genesis, struct fault *fault) {
  struct timespec now;
  struct id node_id;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return journal_fault(fault, errno, journal->data_path, "cannot read the clock");
  int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
  enum status status = node_id_read(journal, &node_id, fault);
  if (status == STATUS_NOT_FOUND) {
    uint64_t seed;
    struct id_source source;
    randombytes_buf(&seed, sizeof seed);
    id_source_init(&source, seed);
    node_id = id_source_next(&source, now_us);
  } else if (status != STATUS_OK) {
    return status;
  }
  struct genesis genesis = {.format = htole32(log_format),
                            .page_bytes = htole32((uint32_t)sysconf(_SC_PAGESIZE)),
                            .created_us = htole64((uint64_t)now_us)};
  memcpy(genesis.node_id, node_id.bytes, sizeof genesis.node_id);
  randombytes_buf(genesis.secret.bytes, sizeof genesis.secret.bytes);
  check_make(&genesis, genesis.check);
  *ret_genesis = genesis;
  return STATUS_OK;
}

static int meta_put(MDB_txn *txn, MDB_dbi meta, const char *name, const void *data, size_t size) {
  MDB_val key = meta_key(name), value = {size, (void *)(uintptr_t)data};
  return mdb_put(txn, meta, &key, &value, MDB_NOOVERWRITE);
}

/* Writes an empty log with this genesis into an empty directory; all of it is on disk then. An LMDB code. */
static int log_write(const char *directory, uint64_t map_bytes, const struct genesis *genesis) {
  MDB_env *env = NULL;
  MDB_txn *txn = NULL;
  MDB_dbi events, meta;
  uint32_t format = htole32(log_format);
  int code = journal_env_open(directory, map_bytes, 0, &env);
  if (code == 0) code = mdb_txn_begin(env, NULL, 0, &txn);
  if (code == 0) code = mdb_dbi_open(txn, "events", MDB_CREATE | MDB_INTEGERKEY, &events);
  if (code == 0) code = mdb_dbi_open(txn, "meta", MDB_CREATE, &meta);
  if (code == 0) code = meta_put(txn, meta, "format", &format, sizeof format);
  if (code == 0) code = meta_put(txn, meta, "genesis", genesis, sizeof *genesis);
  if (code == 0) code = mdb_txn_commit(txn);
  else if (txn != NULL) mdb_txn_abort(txn);
  if (env != NULL) mdb_env_close(env);
  return code;
}

/* Takes away what an interrupted creation left. */
static void leftovers_remove(const struct journal *journal) {
  (void)unlinkat(journal->directory, "log.new/data.mdb", 0);
  (void)unlinkat(journal->directory, "log.new/lock.mdb", 0);
  (void)unlinkat(journal->directory, "log.new", AT_REMOVEDIR);
}

static int directory_sync(const struct journal *journal, const char *name) {
  cleanup(guard_close) int directory = openat(journal->directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return directory < 0 || fsync(directory) != 0 ? errno : 0;
}

enum status genesis_create(struct journal *journal, struct bytes given, struct fault *fault) {
  struct genesis genesis;
  enum status status =
      given.data != NULL ? genesis_check(given, journal->data_path, fault) : genesis_make(journal, &genesis, fault);
  if (status != STATUS_OK) return status;
  if (given.data != NULL) memcpy(&genesis, given.data, sizeof genesis);
  cleanup(guard_free) char *path = NULL;
  if (asprintf(&path, "%s/log.new", journal->data_path) < 0) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  leftovers_remove(journal);
  int code = mkdirat(journal->directory, "log.new", 0700) != 0 ? errno : 0;
  if (code == 0) code = log_write(path, journal->map_bytes, &genesis);
  if (code == 0) code = directory_sync(journal, "log.new");
  if (code == 0 && renameat(journal->directory, "log.new", journal->directory, "log") != 0) code = errno;
  if (code == 0) code = directory_sync(journal, ".");
  if (code == 0) return STATUS_OK;
  leftovers_remove(journal);
  return journal_fault(fault, code, path, "cannot make the log");
}
