/* What the files of the walker share: LMDB's layout on disk (data version 1, 64-bit, little-endian) and the handle.
 *
 *   page     0 number u64 · 8 unused u16 · 10 flags u16 · 12 lower u16 · 14 upper u16 (overflow: 12 pages u32) · 16 …
 *   branch, leaf: u16 offsets of the nodes from 16 to lower, ascending by key; free room to upper; nodes to the end
 *   node     0 low u16 · 2 high u16 · 4 flags u16 · 6 key bytes u16 · 8 key · value (an overflow page's number, when flagged)
 *            leaf: low and high are the value's length; branch: low, high and flags are the child's number
 *   tree     0 pad u32 · 4 flags u16 · 6 depth u16 · 8 branch pages · 16 leaf pages · 24 overflow pages · 32 entries · 40 root
 *   meta     pages 0 and 1: 16 magic · 20 version · 24 address · 32 map size · 40 tree of free pages (its pad: page size, its
 *            flags: the environment's) · 88 main tree · 136 last page · 144 transaction
 *
 * Transaction n writes meta page n mod 2, so the two are always of neighbouring transactions, and the pages of the older one
 * stand until the next transaction begins. */
#ifndef ORBIT_JOURNAL_WALKER_INTERNAL_H
#define ORBIT_JOURNAL_WALKER_INTERNAL_H

#include <endian.h>
#include <string.h>

#include "base/limits.h"
#include "journal/walker.h"

enum {
  page_header_bytes = 16,
  node_header_bytes = 8,
  page_flag_branch = 1,
  page_flag_leaf = 2,
  page_flag_overflow = 4,
  page_flag_meta = 8,
  node_flag_overflow = 1,
  node_flag_tree = 2,
  tree_flag_numbers = 8,
  tree_bytes = 48,
  meta_free_at = 40,
  meta_main_at = 88,
  meta_last_page_at = 136,
  meta_transaction_at = 144,
  meta_bytes = 152,
  lmdb_data_version = 1,
  lmdb_key_bytes_max = 511,
  genesis_record_bytes = 96,
};
static const uint32_t lmdb_magic = 0xBEEFC0DE;
static const uint64_t no_page = UINT64_MAX;

static inline uint16_t load_u16(const uint8_t *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return le16toh(value);
}
static inline uint32_t load_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return le32toh(value);
}
static inline uint64_t load_u64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return le64toh(value);
}

/* A database, as the record of it says. */
struct tree {
  uint32_t pad;
  uint16_t flags, depth;
  uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
  uint64_t page; /* where that record lies */
};
struct tree tree_load(const uint8_t *at, uint64_t page);

/* A node of a page that was judged. */
struct node {
  const uint8_t *key, *value;
  uint32_t key_bytes;
  uint32_t value_bytes; /* leaf: of the value, wherever it lies */
  uint32_t flags;       /* leaf */
  uint64_t child;       /* branch; leaf with the overflow flag: the first of its pages */
};
struct node page_node(const uint8_t *page, unsigned i);
/* What is wrong with a branch or leaf, or NULL: then all its nodes lie inside and apart from each other. */
const char *page_judge(const uint8_t *page, uint32_t page_bytes, uint64_t number);
static inline bool page_is_leaf(const uint8_t *page) { return load_u16(page + 10) == page_flag_leaf; }
static inline unsigned page_node_count(const uint8_t *page) { return (load_u16(page + 12) - page_header_bytes) / 2u; }
/* Pages that a value outside its leaf takes. */
static inline uint64_t overflow_pages(uint64_t bytes, uint32_t page_bytes) {
  return (page_header_bytes + bytes + page_bytes - 1) / page_bytes;
}

/* What one meta page says, and whether it can be used. */
struct snapshot {
  uint8_t raw[2][meta_bytes]; /* both, as they stood */
  unsigned which;
  bool neighbours; /* both are sound and of neighbouring transactions */
  uint64_t transaction, last_page;
  struct tree free, main, events, meta; /* root no_page: empty or not known */
};

/* One page on the way from the root to where the walk stands. */
struct level {
  uint8_t *page;
  uint64_t number;
  unsigned nodes, at;
  bool leaf;
  bool disordered;    /* its keys are not in order: they say nothing about what is below */
  uint64_t low, high; /* keys that are numbers: low <= key < high, by the branches above */
};

/* A walk over one tree. */
struct tree_walk {
  struct walker *walker;
  const struct tree *tree;
  bool numbers; /* keys are u64 */
  bool exact;   /* values outside their leaf take no page more than they need */
  bool trees;   /* values may be records of databases */
  bool silent;  /* a look-up: nothing is reported or counted */
  uint64_t value_bytes_max;
  struct level levels[walker_depth_max];
  unsigned depth;      /* levels in use */
  unsigned leaf_depth; /* 0: no leaf seen yet */
  uint64_t next_key;   /* numbers: the least that may come */
  struct tree found;   /* counted on the way */
  uint8_t *value;      /* a value outside its leaf */
  size_t value_room;
};

struct entry {
  uint64_t number; /* the key, where keys are numbers */
  struct bytes key, value;
  bool is_tree;
  uint64_t page;             /* of the leaf */
  uint64_t key_at, value_at; /* where they lie in the file */
};

struct search; /* walker_scan.c */

struct walker {
  struct walker_listener listener;
  int file;
  char *path;
  uint64_t file_bytes, file_pages;
  uint32_t page_bytes;
  struct snapshot snapshot;
  bool usable; /* there is a snapshot */
  bool moved;  /* it is not the one of the open */
  bool quiet;  /* what is wrong was said already */
  bool finished;
  uint8_t *visited, *counted; /* a bit a page: in this walk; in unused_bytes */
  uint64_t bitmap_pages;
  uint64_t damages, unused_bytes, event_bytes;
  uint64_t next_seq, end_seq;
  unsigned tries; /* new snapshots since the last event */
  uint8_t genesis[genesis_record_bytes];
  bool has_genesis, has_format, has_clean;
  uint64_t clean_seq, meta_page;
  struct tree_walk walk;   /* of the events */
  struct tree_walk lookup; /* walker_get */
  struct search *search;
};

/* walker.c */
void damage_report(struct walker *walker, uint64_t page, const char *format, ...) __attribute__((format(printf, 3, 4)));
void unused_add(struct walker *walker, uint64_t offset, uint64_t bytes);
/* Whether the page was met before; notes that it was. */
bool page_visit(struct walker *walker, uint64_t number);
bool page_is_visited(const struct walker *walker, uint64_t number);

/* walker_file.c */
/* The page size that the first pages agree on; else that of this machine. */
uint32_t page_bytes_find(int file);
/* What is wrong, or NULL. Reads count pages from number on. */
const char *pages_read(struct walker *walker, uint64_t number, uint64_t count, uint8_t *out);
/* Whether the pages of the snapshot that were read until now are what they were when it was taken. */
bool snapshot_holds(const struct walker *walker);
/* Takes the newest snapshot that can be used; reports what is wrong with the first pages unless quiet. CORRUPT: there is none.
 * FOREIGN: another version of LMDB. UNAVAILABLE: the first pages do not stand still. NO_MEMORY. */
enum status snapshot_take(struct walker *walker, struct fault *fault);
/* Reads main, or meta, of the snapshot. UNAVAILABLE: a server has gone on meanwhile. NO_MEMORY. */
enum status snapshot_read(struct walker *walker);
enum status snapshot_meta_read(struct walker *walker);

/* walker_tree.c */
void tree_walk_init(struct tree_walk *walk, struct walker *walker);
void tree_walk_clear(struct tree_walk *walk);
/* To the first entry; with numbers: to the first at or behind key. UNAVAILABLE: the snapshot does not hold any more. */
enum status tree_walk_begin(struct tree_walk *walk, const struct tree *tree, uint64_t key);
/* END, UNAVAILABLE. The entry's spans are valid until the next call. Damage is reported and left behind. */
enum status tree_walk_next(struct tree_walk *walk, struct entry *ret_entry);
/* Reports where the counts of a walk over all of a tree are not those that its record says. */
void tree_walk_judge(struct tree_walk *walk, const char *name);
/* The last key of a tree of numbers. False: it is empty or cannot be told. */
bool tree_last_key(struct walker *walker, const struct tree *tree, uint64_t *ret_key);

/* walker_scan.c */
void search_free(struct search *search);

#endif
