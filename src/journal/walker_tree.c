/* Owns the walk through one tree: from the root to the leaves in the order of keys, with a bounded number of levels and no page
 * twice, past what is damaged. */
#include <stdio.h>
#include <stdlib.h>

#include "base/guard.h"
#include "journal/walker_internal.h"

void tree_walk_init(struct tree_walk *walk, struct walker *walker) {
  memset(walk, 0, sizeof *walk);
  walk->walker = walker;
  walk->value_bytes_max = UINT64_MAX;
}

void tree_walk_clear(struct tree_walk *walk) {
  for (unsigned i = 0; i < walker_depth_max; i++) free(walk->levels[i].page);
  free(walk->value);
  tree_walk_init(walk, walk->walker);
}

/* Says what is wrong, unless it is only that a server went on. OK then, for going on behind it. */
static enum status wrong(const struct tree_walk *walk, uint64_t page, const char *what) {
  if (!snapshot_holds(walk->walker)) return STATUS_UNAVAILABLE;
  if (!walk->silent) damage_report(walk->walker, page, "%s", what);
  return STATUS_OK;
}

/* ---- Keys ---- */

static uint64_t key_number(const struct node *node) {
  uint64_t number;
  memcpy(&number, node->key, sizeof number); /* in the machine's order */
  return number;
}

/* Keys that are numbers: what is wrong with those of a leaf, by themselves and by the branches above. */
static const char *numbers_judge(const struct tree_walk *walk, const struct level *level) {
  uint64_t least = level->low > walk->next_key ? level->low : walk->next_key;
  for (unsigned i = 0; i < level->nodes; i++) {
    struct node node = page_node(level->page, i);
    if (node.key_bytes != sizeof(uint64_t)) return "a key in it is no number";
    uint64_t key = key_number(&node);
    if (key < least) return i == 0 ? "its keys lie before what the branches say" : "its keys do not ascend";
    if (key >= level->high) return "its keys lie behind what the branches say";
    least = key + 1;
  }
  return NULL;
}

static const char *texts_judge(const struct level *level) {
  struct bytes before = {NULL, 0};
  for (unsigned i = 0; i < level->nodes; i++) {
    struct node node = page_node(level->page, i);
    struct bytes key = bytes_of(node.key, node.key_bytes);
    if (key.size == 0 || key.size > lmdb_key_bytes_max) return "a key in it has no lawful length";
    if (i != 0 && bytes_compare(before, key) >= 0) return "its keys do not ascend";
    before = key;
  }
  return NULL;
}

/* The first key of a branch says nothing and may be absent. */
static const char *branch_judge(const struct tree_walk *walk, const struct level *level) {
  if (!walk->numbers) return "it is a branch, where one leaf is enough";
  uint64_t least = level->low;
  for (unsigned i = 0; i < level->nodes; i++) {
    struct node node = page_node(level->page, i);
    if (i == 0 && node.key_bytes == 0) continue;
    if (node.key_bytes != sizeof(uint64_t)) return "a key in it is no number";
    uint64_t key = key_number(&node);
    if (key < least || key >= level->high) return "its keys do not ascend, or do not fit the branches above";
    least = key + (i != 0);
  }
  return NULL;
}

/* ---- Accounting ---- */

static void page_count(const struct tree_walk *walk, const struct level *level) {
  struct walker *walker = walk->walker;
  uint8_t *byte = &walker->counted[level->number / 8], bit = (uint8_t)(1u << level->number % 8);
  if ((*byte & bit) != 0) return;
  *byte |= bit;
  uint64_t at = level->number * walker->page_bytes;
  uint32_t lower = load_u16(level->page + 12), upper = load_u16(level->page + 14);
  unused_add(walker, at + 8, 2);
  unused_add(walker, at + lower, upper - lower);
  for (unsigned i = 0; i < level->nodes; i++) {
    struct node node = page_node(level->page, i);
    bool outside = level->leaf && (node.flags & node_flag_overflow) != 0;
    uint64_t inside = node.key_bytes + (outside ? sizeof(uint64_t) : node.value_bytes);
    if (inside % 2 != 0) unused_add(walker, at + (uint64_t)(node.key - level->page) + inside, 1);
  }
}

static void overflow_count(const struct tree_walk *walk, uint64_t page, uint64_t pages, uint64_t value_bytes) {
  struct walker *walker = walk->walker;
  uint64_t at = page * walker->page_bytes, used = page_header_bytes + value_bytes;
  unused_add(walker, at + 8, 2);
  unused_add(walker, at + used, pages * walker->page_bytes - used);
}

/* ---- Pages ---- */

static const char *level_judge(struct tree_walk *walk, struct level *level) {
  struct walker *walker = walk->walker;
  const char *what = page_judge(level->page, walker->page_bytes, level->number);
  if (what != NULL) return what;
  if (!walk->silent && page_visit(walker, level->number)) return "more than one thing points to it";
  level->leaf = page_is_leaf(level->page);
  level->nodes = page_node_count(level->page);
  level->at = 0;
  level->disordered = false;
  if (level->leaf && walk->leaf_depth != 0 && walk->leaf_depth != walk->depth + 1)
    return "it is a leaf, and lies in another depth than the others";
  return NULL;
}

/* Keys in disorder are reported, and what is in order among them is still visited. */
static enum status keys_judge(struct tree_walk *walk, struct level *level) {
  const char *what = !level->leaf ? branch_judge(walk, level) : walk->numbers ? numbers_judge(walk, level) : texts_judge(level);
  if (what == NULL) return STATUS_OK;
  if (!level->leaf && !walk->numbers) level->at = level->nodes;
  level->disordered = true;
  return wrong(walk, level->number, what);
}

/* Enters a page. OK also when it is damaged: then it was reported and not entered. */
static enum status level_enter(struct tree_walk *walk, uint64_t number, uint64_t low, uint64_t high) {
  struct walker *walker = walk->walker;
  if (walk->depth == walker_depth_max) return wrong(walk, number, "it lies deeper than any tree is");
  struct level *level = &walk->levels[walk->depth];
  if (level->page == NULL && (level->page = malloc(walker->page_bytes)) == NULL) return STATUS_NO_MEMORY;
  level->number = number;
  level->low = low;
  level->high = high;
  const char *what = pages_read(walker, number, 1, level->page);
  if (what == NULL) what = level_judge(walk, level);
  if (what != NULL) return wrong(walk, number, what);
  enum status status = keys_judge(walk, level);
  if (status != STATUS_OK) return status;
  if (level->leaf && !snapshot_holds(walker)) return STATUS_UNAVAILABLE;
  walk->depth++;
  if (level->leaf) walk->leaf_depth = walk->depth;
  if (walk->silent) return STATUS_OK;
  if (level->leaf) walk->found.leaf_pages++;
  else walk->found.branch_pages++;
  page_count(walk, level);
  return STATUS_OK;
}

static enum status child_enter(struct tree_walk *walk, struct level *level, unsigned i) {
  struct node node = page_node(level->page, i);
  uint64_t low = level->low, high = level->high;
  bool bounded = walk->numbers && !level->disordered;
  if (bounded && i != 0) low = key_number(&node);
  if (bounded && i + 1 < level->nodes) {
    struct node next = page_node(level->page, i + 1);
    high = key_number(&next);
  }
  level->at = i + 1;
  return level_enter(walk, node.child, low, high);
}

/* Where to go on in a page for the first key at or behind `key`. */
static unsigned node_find(const struct level *level, uint64_t key) {
  unsigned low = 0, high = level->nodes; /* of nodes before low the key is less; from high on it is not */
  while (low < high) {
    unsigned middle = low + (high - low) / 2;
    struct node node = page_node(level->page, middle);
    uint64_t number = node.key_bytes == sizeof number ? key_number(&node) : 0;
    if (number < key) low = middle + 1;
    else high = middle;
  }
  if (level->leaf) return low;
  struct node node = low < level->nodes ? page_node(level->page, low) : (struct node){0};
  if (low < level->nodes && node.key_bytes == sizeof(uint64_t) && key_number(&node) == key) return low;
  return low != 0 ? low - 1 : 0;
}

enum status tree_walk_begin(struct tree_walk *walk, const struct tree *tree, uint64_t key) {
  walk->tree = tree;
  walk->depth = walk->leaf_depth = 0;
  walk->next_key = 0; /* the first leaf may begin before key */
  walk->found = (struct tree){0};
  if (tree->root == no_page) return STATUS_OK;
  enum status status = level_enter(walk, tree->root, 0, UINT64_MAX);
  if (key == 0) return status;
  must(walk->numbers);
  unsigned depth = 0; /* a damaged page is not entered: the walk goes on behind it */
  while (status == STATUS_OK && walk->depth > depth) {
    depth = walk->depth;
    struct level *level = &walk->levels[depth - 1];
    unsigned i = node_find(level, key);
    if (level->leaf) level->at = i;
    else status = child_enter(walk, level, i);
  }
  walk->next_key = key;
  return status;
}

/* ---- Entries ---- */

static bool value_room(struct tree_walk *walk, uint64_t bytes) {
  if (bytes <= walk->value_room) return true;
  uint8_t *room = realloc(walk->value, bytes);
  if (room == NULL) return false;
  walk->value = room;
  walk->value_room = bytes;
  return true;
}

/* What is wrong with the first of the pages of a value, or NULL. */
static const char *overflow_judge(const struct tree_walk *walk, uint64_t number, uint64_t needed) {
  if (load_u64(walk->value) != number) return "it carries the number of another page";
  if (load_u16(walk->value + 10) != page_flag_overflow) return "it is not marked as holding a long value";
  uint64_t pages = load_u32(walk->value + 12);
  return pages < needed || (walk->exact && pages != needed) ? "its number of pages does not fit its value" : NULL;
}

/* A value in pages of its own. END: it is damaged, and that was reported. */
static enum status value_read(struct tree_walk *walk, const struct node *node, uint64_t leaf, struct bytes *ret_value) {
  struct walker *walker = walk->walker;
  uint64_t needed = overflow_pages(node->value_bytes, walker->page_bytes), bytes = needed * walker->page_bytes;
  const char *what = NULL;
  uint64_t page = node->child;
  if (node->value_bytes > walk->value_bytes_max || needed > walker->file_pages) {
    what = "a value in it is longer than any can be";
    page = leaf;
  } else {
    if (!value_room(walk, bytes)) return STATUS_NO_MEMORY;
    what = pages_read(walker, page, needed, walk->value);
    if (what == NULL) what = overflow_judge(walk, page, needed);
  }
  uint64_t pages = what == NULL ? load_u32(walk->value + 12) : 0, end = 0;
  if (what == NULL &&
      (__builtin_add_overflow(page, pages, &end) || end - 1 > walker->snapshot.last_page || end > walker->file_pages))
    what = "its number of pages does not fit the file";
  if (what == NULL && !walk->silent)
    for (uint64_t i = 0; i < pages; i++)
      if (page_visit(walker, page + i)) what = "more than one thing points to it";
  if (what != NULL) {
    enum status status = wrong(walk, page, what);
    return status == STATUS_OK ? STATUS_END : status;
  }
  if (!snapshot_holds(walker)) return STATUS_UNAVAILABLE;
  if (!walk->silent) {
    walk->found.overflow_pages += pages;
    overflow_count(walk, page, pages, node->value_bytes);
  }
  *ret_value = bytes_of(walk->value + page_header_bytes, node->value_bytes);
  return STATUS_OK;
}

/* END: this one is damaged. */
static enum status entry_read(struct tree_walk *walk, struct level *level, struct entry *ret_entry) {
  struct node node = page_node(level->page, level->at);
  struct entry entry = {.key = bytes_of(node.key, node.key_bytes), .page = level->number};
  entry.key_at = level->number * walk->walker->page_bytes + (uint64_t)(node.key - level->page);
  if (walk->numbers) {
    /* What is out of order was reported when the page was entered. */
    if (node.key_bytes != sizeof entry.number) return STATUS_END;
    entry.number = key_number(&node);
    if (entry.number < walk->next_key || entry.number < level->low || entry.number >= level->high) return STATUS_END;
  }
  enum status status = STATUS_OK;
  if (node.flags == node_flag_overflow) {
    status = value_read(walk, &node, level->number, &entry.value);
  } else if (node.flags == 0 || (node.flags == node_flag_tree && walk->trees)) {
    entry.value = bytes_of(node.value, node.value_bytes);
    entry.is_tree = node.flags == node_flag_tree;
  } else {
    status = wrong(walk, level->number, "an entry in it has flags that no log has");
    if (status == STATUS_OK) status = STATUS_END;
  }
  if (status != STATUS_OK) return status;
  bool outside = node.flags == node_flag_overflow;
  entry.value_at = outside ? node.child * walk->walker->page_bytes + page_header_bytes : entry.key_at + node.key_bytes;
  walk->found.entries++;
  walk->next_key = entry.number + 1;
  *ret_entry = entry;
  return STATUS_OK;
}

enum status tree_walk_next(struct tree_walk *walk, struct entry *ret_entry) {
  while (walk->depth != 0) {
    struct level *level = &walk->levels[walk->depth - 1];
    if (level->at >= level->nodes) {
      walk->depth--;
    } else if (!level->leaf) {
      enum status status = child_enter(walk, level, level->at);
      if (status != STATUS_OK) return status;
    } else {
      enum status status = entry_read(walk, level, ret_entry);
      if (status == STATUS_OK || status == STATUS_END) level->at++;
      if (status != STATUS_END) return status;
    }
  }
  return STATUS_END;
}

/* ---- The whole ---- */

void tree_walk_judge(struct tree_walk *walk, const char *name) {
  const struct tree *said = walk->tree, *found = &walk->found;
  if (walk->silent || walk->walker->damages != 0) return; /* what is missing was reported */
  if (said->depth == walk->leaf_depth && said->branch_pages == found->branch_pages && said->leaf_pages == found->leaf_pages &&
      said->overflow_pages == found->overflow_pages && said->entries == found->entries)
    return;
  damage_report(walk->walker, said->page, "its counts of the database %s are not what was found", name);
}

bool tree_last_key(struct walker *walker, const struct tree *tree, uint64_t *ret_key) {
  uint8_t *page = malloc(walker->page_bytes);
  uint64_t number = tree->root;
  bool found = false;
  for (unsigned depth = 0; page != NULL && depth < walker_depth_max && number != no_page; depth++) {
    if (pages_read(walker, number, 1, page) != NULL || page_judge(page, walker->page_bytes, number) != NULL) break;
    struct node last = page_node(page, page_node_count(page) - 1);
    if (!page_is_leaf(page)) {
      number = last.child;
      continue;
    }
    found = last.key_bytes == sizeof *ret_key;
    if (found) *ret_key = key_number(&last);
    break;
  }
  free(page);
  return found;
}
