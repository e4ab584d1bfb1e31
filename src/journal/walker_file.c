/* Owns how the walker reads the file: whole pages into memory of its own, and which of the two meta pages is believed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"
#include "journal/walker_internal.h"

/* Reads all of it; 0, or errno, or -1 when the file ends before. */
static int file_read(int file, uint8_t *out, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    ssize_t got = pread(file, out, bytes, (off_t)at);
    if (got == 0) return -1;
    if (got < 0 && errno != EINTR) return errno;
    if (got < 0) continue;
    out += got;
    at += (uint64_t)got;
    bytes -= (uint64_t)got;
  }
  return 0;
}

const char *pages_read(struct walker *walker, uint64_t number, uint64_t count, uint8_t *out) {
  uint64_t end;
  if (number < 2 || count == 0 || __builtin_add_overflow(number, count, &end) || end - 1 > walker->snapshot.last_page)
    return "it does not exist, yet something points to it";
  int code =
      end > walker->file_pages ? -1 : file_read(walker->file, out, count * walker->page_bytes, number * walker->page_bytes);
  if (code == 0) return NULL;
  return code < 0 ? "it lies behind the end of the file" : strerror(code);
}

/* ---- The first pages ---- */

/* What the meta page at this place says of its page size; 0: there is none, or it says nothing that can be. */
static uint32_t page_bytes_at(int file, uint64_t at) {
  uint8_t meta[meta_bytes];
  if (file_read(file, meta, sizeof meta, at) != 0 || load_u32(meta + 16) != lmdb_magic) return 0;
  uint32_t bytes = load_u32(meta + meta_free_at);
  return bytes >= walker_page_bytes_min && bytes <= walker_page_bytes_max && (bytes & (bytes - 1)) == 0 ? bytes : 0;
}

uint32_t page_bytes_find(int file) {
  for (uint32_t bytes = walker_page_bytes_min; bytes <= walker_page_bytes_max; bytes *= 2)
    if (page_bytes_at(file, bytes) == bytes) return bytes;
  uint32_t bytes = page_bytes_at(file, 0);
  if (bytes != 0) return bytes;
  long own = sysconf(_SC_PAGESIZE);
  return own > walker_page_bytes_max ? walker_page_bytes_max : (uint32_t)own;
}

static int metas_read_once(const struct walker *walker, uint8_t raw[2][meta_bytes]) {
  int code = file_read(walker->file, raw[0], meta_bytes, 0);
  return code != 0 ? code : file_read(walker->file, raw[1], meta_bytes, walker->page_bytes);
}

/* A server may be writing them: they are believed when they read the same twice. 0, errno, -1: too short, -2: they never stood
 * still. */
static int metas_read(const struct walker *walker, uint8_t ret_raw[2][meta_bytes]) {
  uint8_t again[2][meta_bytes];
  int code = metas_read_once(walker, ret_raw);
  for (unsigned i = 0; code == 0 && i < walker_tries_max; i++) {
    code = metas_read_once(walker, again);
    if (code != 0 || memcmp(again, ret_raw, sizeof again) == 0) return code;
    memcpy(ret_raw, again, sizeof again);
  }
  return code != 0 ? code : -2;
}

bool snapshot_holds(const struct walker *walker) {
  uint8_t raw[2][meta_bytes];
  if (!walker->usable || metas_read_once(walker, raw) != 0) return true; /* what is wrong is said where it is met */
  if (memcmp(raw, walker->snapshot.raw, sizeof raw) == 0) return true;
  uint64_t first = load_u64(raw[0] + meta_transaction_at), second = load_u64(raw[1] + meta_transaction_at);
  return (first > second ? first : second) <= walker->snapshot.transaction + 1;
}

/* What is wrong with a meta page so that it cannot be used, or NULL. */
static const char *meta_judge(const struct walker *walker, const uint8_t *raw, unsigned number) {
  uint64_t transaction = load_u64(raw + meta_transaction_at);
  if (load_u32(raw + 16) != lmdb_magic) return "it does not begin as an LMDB environment does";
  if (load_u32(raw + 20) != lmdb_data_version) return "it names another version of LMDB";
  if (load_u64(raw) != number) return "it carries the number of another page";
  if (load_u16(raw + 10) != page_flag_meta) return "it is not marked as a first page";
  struct tree free = tree_load(raw + meta_free_at, number), main = tree_load(raw + meta_main_at, number);
  if (free.pad != walker->page_bytes) return "it names another page size";
  if (free.flags != tree_flag_numbers || main.flags != 0 || main.pad != 0) return "its flags are not those of a log";
  if (transaction % 2 != number && transaction != 0) return "it is of a transaction that is written elsewhere";
  return NULL;
}

static void snapshot_choose(struct snapshot *snapshot, unsigned which) {
  const uint8_t *raw = snapshot->raw[which];
  snapshot->which = which;
  snapshot->transaction = load_u64(raw + meta_transaction_at);
  snapshot->last_page = load_u64(raw + meta_last_page_at);
  snapshot->free = tree_load(raw + meta_free_at, which);
  snapshot->main = tree_load(raw + meta_main_at, which);
  snapshot->events = snapshot->meta = (struct tree){.root = no_page};
}

/* The newer of the two. Neighbours in time are the only ones that LMDB writes; of others, one is damaged and nothing tells
 * which: then the one that leads to more events. */
static unsigned newer_find(struct walker *walker) {
  struct snapshot *snapshot = &walker->snapshot;
  uint64_t first = load_u64(snapshot->raw[0] + meta_transaction_at), second = load_u64(snapshot->raw[1] + meta_transaction_at);
  unsigned newer = first >= second ? 0 : 1;
  snapshot->neighbours = first - second == 1 || second - first == 1 || (first == 0 && second == 0);
  if (snapshot->neighbours) return newer;
  damage_report(walker, newer, "its transaction, %" PRIu64 ", is not the neighbour of %" PRIu64 " on the other first page",
                newer == 0 ? first : second, newer == 0 ? second : first);
  uint64_t entries[2] = {0, 0};
  bool quiet = walker->quiet;
  walker->quiet = true;
  for (unsigned i = 0; i < 2; i++) {
    snapshot_choose(snapshot, i);
    if (snapshot_read(walker) == STATUS_OK && snapshot->events.root != no_page) entries[i] = snapshot->events.entries;
  }
  walker->quiet = quiet;
  return entries[0] == entries[1] ? newer : entries[0] > entries[1] ? 0 : 1;
}

static enum status nothing_usable(struct walker *walker, const uint8_t raw[2][meta_bytes], struct fault *fault) {
  bool foreign = load_u32(raw[0] + 16) == lmdb_magic && load_u32(raw[1] + 16) == lmdb_magic &&
                 load_u32(raw[0] + 20) == load_u32(raw[1] + 20) && load_u32(raw[0] + 20) != lmdb_data_version;
  if (!foreign) return STATUS_CORRUPT;
  return fault_set(fault, STATUS_FOREIGN, NULL,
                   "%.160s was written by another version of LMDB (data format %" PRIu32
                   ", this program reads %d): use that version",
                   walker->path, load_u32(raw[0] + 20), lmdb_data_version);
}

static void cut_report(struct walker *walker) {
  uint64_t last_page = walker->snapshot.last_page;
  if (last_page < walker->file_pages) return; /* then every sum with it is in range too */
  damage_report(walker, last_page, "the file is cut off: pages up to this one are in use, and it ends with page %" PRIu64,
                walker->file_pages != 0 ? walker->file_pages - 1 : 0);
}

/* Room for a bit a page, all clear. */
static bool bitmaps_make(struct walker *walker) {
  uint64_t pages = walker->file_pages;
  if (pages > walker->bitmap_pages) {
    uint64_t bytes = pages / 8 + 1, old = walker->bitmap_pages == 0 ? 0 : walker->bitmap_pages / 8 + 1;
    uint8_t *visited = realloc(walker->visited, bytes);
    if (visited != NULL) walker->visited = visited;
    uint8_t *counted = realloc(walker->counted, bytes);
    if (counted != NULL) walker->counted = counted;
    if (visited == NULL || counted == NULL) return false;
    memset(counted + old, 0, bytes - old);
    walker->bitmap_pages = pages;
  }
  if (walker->visited != NULL) memset(walker->visited, 0, walker->bitmap_pages / 8 + 1);
  return true;
}

enum status snapshot_take(struct walker *walker, struct fault *fault) {
  struct snapshot *snapshot = &walker->snapshot;
  struct stat found;
  walker->usable = snapshot->neighbours = false;
  int code = metas_read(walker, snapshot->raw);
  if (code == -2) return STATUS_UNAVAILABLE;
  if (fstat(walker->file, &found) != 0) return journal_fault(fault, errno, walker->path, "cannot look at it");
  walker->file_bytes = (uint64_t)found.st_size;
  walker->file_pages = walker->file_bytes / walker->page_bytes;
  if (!bitmaps_make(walker)) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  if (code != 0) {
    damage_report(walker, 0, "%s", code < 0 ? "the file is cut off inside its first pages" : strerror(code));
    return STATUS_CORRUPT;
  }
  const char *wrong[2];
  for (unsigned i = 0; i < 2; i++) wrong[i] = meta_judge(walker, snapshot->raw[i], i);
  if (wrong[0] != NULL && wrong[1] != NULL) {
    enum status status = nothing_usable(walker, (const uint8_t(*)[meta_bytes])snapshot->raw, fault);
    if (status == STATUS_FOREIGN) return status;
  }
  for (unsigned i = 0; i < 2; i++)
    if (wrong[i] != NULL)
      damage_report(walker, i, "%s%s", wrong[i], wrong[1 - i] == NULL ? "; the other first page was used" : "");
  if (wrong[0] != NULL && wrong[1] != NULL) return STATUS_CORRUPT;
  walker->usable = true;
  if (wrong[0] != NULL) snapshot_choose(snapshot, 1);
  else if (wrong[1] != NULL) snapshot_choose(snapshot, 0);
  else snapshot_choose(snapshot, newer_find(walker));
  cut_report(walker);
  return STATUS_OK;
}

/* ---- main and meta: one leaf each ---- */

static const char database_events[] = "events", database_meta[] = "meta";

static void main_entry_take(struct walker *walker, const struct entry *entry) {
  struct snapshot *snapshot = &walker->snapshot;
  bool is_events = bytes_equal_text(entry->key, database_events);
  struct tree tree = {.root = no_page};
  if (entry->is_tree && entry->value.size == tree_bytes) tree = tree_load(entry->value.data, entry->page);
  if (!is_events && !bytes_equal_text(entry->key, database_meta)) {
    damage_report(walker, entry->page, "it names a database that no log has");
  } else if (!entry->is_tree || entry->value.size != tree_bytes) {
    damage_report(walker, entry->page, "its record of the database %s is none", is_events ? database_events : database_meta);
  } else if (tree.pad != 0 || tree.flags != (is_events ? tree_flag_numbers : 0)) {
    damage_report(walker, entry->page, "its record of the database %s has flags that no log has",
                  is_events ? database_events : database_meta);
  }
  if (is_events) snapshot->events = tree;
  else if (bytes_equal_text(entry->key, database_meta)) snapshot->meta = tree;
}

static void meta_entry_take(struct walker *walker, const struct entry *entry) {
  struct bytes value = entry->value;
  walker->meta_page = entry->page;
  if (bytes_equal_text(entry->key, "format") && value.size == sizeof(uint32_t) && load_u32(value.data) == log_format) {
    walker->has_format = true;
  } else if (bytes_equal_text(entry->key, "genesis") && value.size == sizeof walker->genesis &&
             genesis_check(value, "", NULL) == STATUS_OK) {
    memcpy(walker->genesis, value.data, sizeof walker->genesis);
    walker->has_genesis = true;
  } else if (bytes_equal_text(entry->key, "clean") && value.size == sizeof walker->clean_seq) {
    walker->clean_seq = load_u64(value.data);
    walker->has_clean = true;
  } else {
    damage_report(walker, entry->page, "its entry \"%.*s\" is not one that a log of this format has",
                  (int)(entry->key.size < 32 ? entry->key.size : 32), (const char *)entry->key.data);
  }
}

static enum status small_tree_read(struct walker *walker, const struct tree *tree, const char *name,
                                   void (*take)(struct walker *, const struct entry *)) {
  struct tree_walk walk;
  struct entry entry;
  tree_walk_init(&walk, walker);
  walk.silent = walker->quiet;
  walk.trees = tree == &walker->snapshot.main;
  enum status status = tree_walk_begin(&walk, tree, 0);
  while (status == STATUS_OK && (status = tree_walk_next(&walk, &entry)) == STATUS_OK) take(walker, &entry);
  if (status == STATUS_END) tree_walk_judge(&walk, name);
  tree_walk_clear(&walk);
  return status == STATUS_END ? STATUS_OK : status;
}

enum status snapshot_read(struct walker *walker) {
  struct snapshot *snapshot = &walker->snapshot;
  uint64_t before = walker->damages;
  enum status status = small_tree_read(walker, &snapshot->main, "main", main_entry_take);
  if (status == STATUS_OK && walker->damages == before && snapshot->events.page == 0 && snapshot->meta.page == 0)
    damage_report(walker, snapshot->which, "it has not the databases of a log");
  return status;
}

enum status snapshot_meta_read(struct walker *walker) {
  walker->has_genesis = walker->has_format = walker->has_clean = false;
  walker->meta_page = walker->snapshot.which;
  enum status status = small_tree_read(walker, &walker->snapshot.meta, database_meta, meta_entry_take);
  if (status != STATUS_OK) return status;
  if (!walker->has_format) damage_report(walker, walker->meta_page, "the format version of the log is missing or damaged");
  if (!walker->has_genesis) damage_report(walker, walker->meta_page, "genesis is missing or does not fit its own check value");
  return STATUS_OK;
}
