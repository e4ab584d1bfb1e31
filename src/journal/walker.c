/* Owns the walker as a whole: opening, the walk over the events with its change of snapshots, look-ups, and the account of
 * every byte of the file. */
#include "journal/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"
#include "journal/walker_internal.h"

void damage_report(struct walker *walker, uint64_t page, const char *format, ...) {
  char text[256];
  va_list arguments;
  if (walker->quiet) return;
  walker->damages++;
  if (walker->listener.damage == NULL) return;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  walker->listener.damage(walker->listener.context, page, text);
}

void unused_add(struct walker *walker, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return;
  walker->unused_bytes += bytes;
  if (walker->listener.unused != NULL) walker->listener.unused(walker->listener.context, offset, bytes);
}

bool page_is_visited(const struct walker *walker, uint64_t number) {
  return (walker->visited[number / 8] >> number % 8 & 1) != 0;
}

bool page_visit(struct walker *walker, uint64_t number) {
  bool before = page_is_visited(walker, number);
  walker->visited[number / 8] |= (uint8_t)(1u << number % 8);
  return before;
}

/* ---- Opening ---- */

/* The first snapshot, with genesis and the end of the events. Damage is no failure. */
static enum status first_snapshot(struct walker *walker, struct fault *fault) {
  enum status status = STATUS_UNAVAILABLE;
  for (unsigned i = 0; status == STATUS_UNAVAILABLE && i < walker_tries_max; i++) {
    status = snapshot_take(walker, fault);
    if (status == STATUS_OK) status = snapshot_read(walker);
    if (status == STATUS_OK) status = snapshot_meta_read(walker);
    walker->end_seq = 0;
    if (status == STATUS_OK && walker->snapshot.events.root != no_page &&
        !tree_last_key(walker, &walker->snapshot.events, &walker->end_seq))
      walker->end_seq = 0;
    if (status == STATUS_OK && !snapshot_holds(walker)) status = STATUS_UNAVAILABLE;
    if (status == STATUS_OK) status = tree_walk_begin(&walker->walk, &walker->snapshot.events, 0);
  }
  if (status == STATUS_UNAVAILABLE)
    return fault_set(fault, status, NULL, "%.160s: a server commits faster than it can be read: try again", walker->path);
  if (status == STATUS_NO_MEMORY) return fault_set(fault, status, NULL, "out of memory");
  return status == STATUS_CORRUPT ? STATUS_OK : status;
}

static enum status file_open(struct walker *walker, const char *data_directory, struct fault *fault) {
  struct stat found;
  if (asprintf(&walker->path, "%s/log/data.mdb", data_directory) < 0) walker->path = NULL;
  if (walker->path == NULL) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  walker->file = open(walker->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (walker->file < 0 && (errno == ENOENT || errno == ENOTDIR))
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "%.160s holds no log: name a data directory or a backup", data_directory);
  if (walker->file < 0) return journal_fault(fault, errno, walker->path, "cannot open it");
  if (fstat(walker->file, &found) != 0) return journal_fault(fault, errno, walker->path, "cannot look at it");
  if (!S_ISREG(found.st_mode)) return fault_set(fault, STATUS_NOT_FOUND, NULL, "%.160s is no file", walker->path);
  (void)posix_fadvise(walker->file, 0, 0, POSIX_FADV_SEQUENTIAL);
  walker->page_bytes = page_bytes_find(walker->file);
  return STATUS_OK;
}

enum status walker_open(const char *data_directory, const struct walker_listener *listener, struct walker **ret_walker,
                        struct fault *fault) {
  struct walker *walker = guard_calloc(1, sizeof *walker);
  walker->file = -1;
  if (listener != NULL) walker->listener = *listener;
  walker->snapshot.events.root = walker->snapshot.meta.root = walker->snapshot.main.root = walker->snapshot.free.root = no_page;
  tree_walk_init(&walker->walk, walker);
  walker->walk.numbers = walker->walk.exact = true;
  walker->walk.value_bytes_max = record_header_bytes + event_body_bytes_max;
  tree_walk_init(&walker->lookup, walker);
  walker->lookup.numbers = walker->lookup.silent = true;
  walker->lookup.value_bytes_max = walker->walk.value_bytes_max;
  enum status status = file_open(walker, data_directory, fault);
  if (status == STATUS_OK) status = first_snapshot(walker, fault);
  if (status != STATUS_OK) {
    walker_close(walker);
    return status;
  }
  *ret_walker = walker;
  return STATUS_OK;
}

void walker_close(struct walker *walker) {
  if (walker == NULL) return;
  tree_walk_clear(&walker->walk);
  tree_walk_clear(&walker->lookup);
  search_free(walker->search);
  guard_close(&walker->file);
  free(walker->visited);
  free(walker->counted);
  free(walker->path);
  free(walker);
}

struct bytes walker_genesis(const struct walker *walker) {
  return walker->has_genesis ? bytes_of(walker->genesis, sizeof walker->genesis) : bytes_of(NULL, 0);
}

/* ---- The events ---- */

/* A newer snapshot in place of one that a server has begun to write over. What is wrong with its first pages would have been
 * wrong at the open. */
static enum status snapshot_renew(struct walker *walker) {
  walker->moved = true;
  walker->lookup.depth = 0; /* it stands in the older one */
  if (walker->tries++ == walker_tries_max) return STATUS_UNAVAILABLE;
  walker->quiet = true;
  enum status status = snapshot_take(walker, NULL);
  if (status == STATUS_OK) status = snapshot_read(walker);
  walker->quiet = false;
  return status;
}

/* Goes on behind the last event. UNAVAILABLE: try again; or no more, once tries are used up. */
static enum status walk_renew(struct walker *walker) {
  enum status status = snapshot_renew(walker);
  return status == STATUS_OK ? tree_walk_begin(&walker->walk, &walker->snapshot.events, walker->next_seq) : status;
}

enum status walker_next(struct walker *walker, uint64_t *ret_seq, struct bytes *ret_record) {
  struct entry entry;
  enum status status = tree_walk_next(&walker->walk, &entry);
  while (status == STATUS_UNAVAILABLE && walker->tries <= walker_tries_max) {
    status = walk_renew(walker);
    if (status == STATUS_OK) status = tree_walk_next(&walker->walk, &entry);
  }
  if (status != STATUS_OK) return status;
  if (walker->moved && entry.number > walker->end_seq) return STATUS_END; /* committed since the open */
  walker->tries = 0;
  walker->next_seq = entry.number + 1;
  walker->event_bytes += entry.value.size;
  *ret_seq = entry.number;
  *ret_record = entry.value;
  return STATUS_OK;
}

enum status walker_get(struct walker *walker, uint64_t seq, struct bytes *ret_record) {
  struct entry entry;
  enum status status = STATUS_UNAVAILABLE;
  if (!walker->usable) return STATUS_END;
  bool in_row = walker->lookup.depth != 0 && walker->lookup.next_key == seq; /* no need to go down from the root again */
  while (status == STATUS_UNAVAILABLE) {
    status = in_row ? STATUS_OK : tree_walk_begin(&walker->lookup, &walker->snapshot.events, seq);
    in_row = false;
    if (status == STATUS_OK) status = tree_walk_next(&walker->lookup, &entry);
    if (status != STATUS_UNAVAILABLE) break;
    status = snapshot_renew(walker);
    /* The walk over the events has to go on in the same snapshot. */
    if (status == STATUS_OK) status = tree_walk_begin(&walker->walk, &walker->snapshot.events, walker->next_seq);
    if (status == STATUS_OK) status = STATUS_UNAVAILABLE;
    if (walker->tries > walker_tries_max) return STATUS_UNAVAILABLE;
  }
  if (status != STATUS_OK) return status;
  walker->tries = 0;
  if (entry.number != seq) return STATUS_END;
  *ret_record = entry.value;
  return STATUS_OK;
}

void walker_facts(const struct walker *walker, struct walker_facts *ret_facts) {
  *ret_facts = (struct walker_facts){
      .file_bytes = walker->file_bytes,
      .page_bytes = walker->page_bytes,
      .end_seq = walker->end_seq,
      .entries = walker->snapshot.events.root != no_page ? walker->snapshot.events.entries : 0,
      .damages = walker->damages,
      .unused_bytes = walker->unused_bytes,
      .end_known = walker->usable && walker->snapshot.neighbours && walker->snapshot.events.root != no_page,
      .whole = walker->finished && !walker->moved && walker->usable,
  };
}

/* ---- The account ---- */

/* Of the meta page that is used, everything is judged but its address and map size; of the other one, what tells that it is the
 * older neighbour. */
static void metas_count(struct walker *walker) {
  for (unsigned i = 0; i < 2; i++) {
    uint64_t at = (uint64_t)i * walker->page_bytes;
    unused_add(walker, at + 8, 2);
    unused_add(walker, at + 12, 4);
    unused_add(walker, at + 24, 16);
    unused_add(walker, at + meta_bytes, walker->page_bytes - meta_bytes);
    if (i == walker->snapshot.which) continue;
    unused_add(walker, at + meta_free_at + 6, tree_bytes - 6);
    unused_add(walker, at + meta_main_at + 6, tree_bytes - 6 + sizeof walker->snapshot.last_page);
  }
}

/* One list of free pages: how many, then their numbers; room behind them is lawful. */
static void free_list_take(struct walker *walker, const struct entry *entry) {
  struct bytes value = entry->value;
  uint64_t count = value.size >= sizeof count ? load_u64(value.data) : 0;
  if (value.size < sizeof count || value.size % sizeof count != 0 || count > value.size / sizeof count - 1 ||
      entry->number > walker->snapshot.transaction) {
    damage_report(walker, entry->page, "a list of free pages in it is none");
    return;
  }
  /* Since which transaction they are free matters to the next writer alone. */
  unused_add(walker, entry->key_at, sizeof entry->number);
  unused_add(walker, entry->value_at + (count + 1) * sizeof count, value.size - (count + 1) * sizeof count);
  for (uint64_t i = 1; i <= count; i++) {
    uint64_t number = load_u64(value.data + i * sizeof number);
    if (number < 2 || number > walker->snapshot.last_page || number >= walker->file_pages) {
      damage_report(walker, entry->page, "a list of free pages in it names one that does not exist");
      return;
    }
    if (page_visit(walker, number)) {
      damage_report(walker, entry->page, "a list of free pages in it names page %" PRIu64 ", which is in use", number);
      return;
    }
    unused_add(walker, number * walker->page_bytes, walker->page_bytes);
  }
}

static enum status free_tree_read(struct walker *walker) {
  struct tree_walk walk;
  struct entry entry;
  tree_walk_init(&walk, walker);
  walk.numbers = true;
  enum status status = tree_walk_begin(&walk, &walker->snapshot.free, 0);
  while (status == STATUS_OK && (status = tree_walk_next(&walk, &entry)) == STATUS_OK) free_list_take(walker, &entry);
  if (status == STATUS_END) tree_walk_judge(&walk, "of free pages");
  tree_walk_clear(&walk);
  return status;
}

/* Every page up to the last one belongs to something. */
static void pages_account(struct walker *walker) {
  uint64_t lost = 0, first = 0;
  for (uint64_t number = 2; number <= walker->snapshot.last_page && walker->damages == 0; number++) {
    if (page_is_visited(walker, number)) continue;
    if (lost++ == 0) first = number;
  }
  if (lost != 0)
    damage_report(walker, first, "nothing leads to it, nor to %" PRIu64 " others, and they are not free", lost - 1);
  uint64_t end = (walker->snapshot.last_page + 1) * walker->page_bytes;
  if (walker->snapshot.last_page < walker->file_pages) unused_add(walker, end, walker->file_bytes - end);
}

void walker_finish(struct walker *walker) {
  if (walker->finished || !walker->usable) return;
  walker->finished = true;
  if (!walker->moved) {
    if (walker->has_clean && walker->clean_seq != walker->end_seq)
      damage_report(walker, walker->meta_page, "its mark of a clean stop names seq %" PRIu64 ", which is not the last",
                    walker->clean_seq);
    tree_walk_judge(&walker->walk, "events");
    if (free_tree_read(walker) == STATUS_UNAVAILABLE || !snapshot_holds(walker)) walker->moved = true;
  }
  if (walker->moved) {
    /* Beside a server that writes there is no one file to account for: what lies in no event. */
    walker->unused_bytes = walker->file_bytes > walker->event_bytes ? walker->file_bytes - walker->event_bytes : 0;
    return;
  }
  metas_count(walker);
  pages_account(walker);
}

/* ---- For liblmdb ---- */

/* Whether a server holds DATA/LOCK, without touching that lock: a moment's hold would turn away a server that starts. */
static bool lock_is_held(const char *data_directory) {
  cleanup(guard_free) char *path = NULL;
  struct stat found;
  char line[256], wanted[64];
  bool held = false;
  if (asprintf(&path, "%s/LOCK", data_directory) < 0) return false;
  if (stat(path, &found) != 0) return false;
  (void)snprintf(wanted, sizeof wanted, ":%" PRIu64 " ", (uint64_t)found.st_ino);
  FILE *locks = fopen("/proc/locks", "re");
  while (locks != NULL && !held && fgets(line, sizeof line, locks) != NULL)
    held = strstr(line, "FLOCK") != NULL && strstr(line, "WRITE") != NULL && strstr(line, wanted) != NULL;
  if (locks != NULL) (void)fclose(locks);
  return held;
}

struct first_damage {
  bool found;
  uint64_t page;
  char what[200];
};

static void first_note(void *context, uint64_t page, const char *what) {
  struct first_damage *first = context;
  if (first->found) return;
  first->found = true;
  first->page = page;
  (void)snprintf(first->what, sizeof first->what, "%s", what);
}

enum status walker_check(const char *data_directory, struct fault *fault) {
  struct first_damage first = {0};
  struct walker_listener listener = {.damage = first_note, .context = &first};
  struct walker *walker = NULL;
  struct bytes record;
  uint64_t seq;
  if (lock_is_held(data_directory)) return STATUS_OK;
  if (walker_open(data_directory, &listener, &walker, NULL) != STATUS_OK) return STATUS_OK;
  while (!first.found && walker_next(walker, &seq, &record) == STATUS_OK)
    ;
  if (!first.found) walker_finish(walker);
  walker_close(walker);
  if (!first.found) return STATUS_OK;
  return fault_set(fault, STATUS_CORRUPT, NULL,
                   "%.120s: its log is damaged: page %" PRIu64
                   ": %.100s; run orbit-replay verify, then salvage, or put back a backup",
                   data_directory, first.page, first.what);
}
