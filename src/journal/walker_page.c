/* Owns the judgement of one page by its own bytes: whether its nodes lie inside it and apart from each other. */
#include "journal/walker_internal.h"

struct tree tree_load(const uint8_t *at, uint64_t page) {
  return (struct tree){.pad = load_u32(at),
                       .flags = load_u16(at + 4),
                       .depth = load_u16(at + 6),
                       .branch_pages = load_u64(at + 8),
                       .leaf_pages = load_u64(at + 16),
                       .overflow_pages = load_u64(at + 24),
                       .entries = load_u64(at + 32),
                       .root = load_u64(at + 40),
                       .page = page};
}

struct node page_node(const uint8_t *page, unsigned i) {
  const uint8_t *at = page + load_u16(page + page_header_bytes + 2 * (size_t)i);
  uint32_t low = load_u16(at), high = load_u16(at + 2), flags = load_u16(at + 4), key_bytes = load_u16(at + 6);
  struct node node = {.key = at + node_header_bytes, .key_bytes = key_bytes, .value = at + node_header_bytes + key_bytes};
  if (!page_is_leaf(page)) {
    node.child = low | (uint64_t)high << 16 | (uint64_t)flags << 32;
    return node;
  }
  node.flags = flags;
  node.value_bytes = low | high << 16;
  if ((flags & node_flag_overflow) != 0) node.child = load_u64(node.value);
  return node;
}

/* Bytes of the node at this offset, made even as LMDB does; 0: it does not lie inside. */
static uint32_t node_bytes(const uint8_t *page, uint32_t page_bytes, uint32_t at, bool leaf) {
  if (at % 2 != 0 || at + node_header_bytes > page_bytes) return 0;
  uint32_t bytes = node_header_bytes + load_u16(page + at + 6);
  if (leaf && (load_u16(page + at + 4) & node_flag_overflow) != 0) {
    bytes += sizeof(uint64_t);
  } else if (leaf) {
    uint32_t value = load_u16(page + at) | (uint32_t)load_u16(page + at + 2) << 16;
    if (value > page_bytes) return 0;
    bytes += value;
  }
  bytes += bytes & 1;
  return bytes <= page_bytes - at ? bytes : 0;
}

/* Marks two bytes a bit; false when one was taken before. */
static bool room_take(uint64_t *taken, uint32_t at, uint32_t bytes) {
  for (uint32_t unit = at / 2; unit < (at + bytes) / 2; unit++) {
    uint64_t bit = UINT64_C(1) << unit % 64;
    if ((taken[unit / 64] & bit) != 0) return false;
    taken[unit / 64] |= bit;
  }
  return true;
}

/* The nodes of a page that was appended to lie one before the other from the end; others in any order. */
static const char *nodes_judge(const uint8_t *page, uint32_t page_bytes, uint32_t upper, bool leaf) {
  unsigned count = page_node_count(page);
  uint64_t taken[walker_page_bytes_max / 2 / 64];
  uint32_t edge = page_bytes, total = 0;
  bool in_order = true;
  for (unsigned i = 0; i < count; i++) {
    uint32_t at = load_u16(page + page_header_bytes + 2 * (size_t)i);
    uint32_t bytes = at < upper ? 0 : node_bytes(page, page_bytes, at, leaf);
    if (bytes == 0) return "a node reaches outside the page";
    in_order = in_order && at + bytes == edge;
    edge = at;
    total += bytes;
    if (total > page_bytes) return "its nodes overlap";
  }
  if (total != page_bytes - upper) return "its nodes do not fill it";
  if (in_order) return NULL;
  memset(taken, 0, sizeof taken);
  for (unsigned i = 0; i < count; i++) {
    uint32_t at = load_u16(page + page_header_bytes + 2 * (size_t)i);
    if (!room_take(taken, at, node_bytes(page, page_bytes, at, leaf))) return "its nodes overlap";
  }
  return NULL;
}

const char *page_judge(const uint8_t *page, uint32_t page_bytes, uint64_t number) {
  if (load_u64(page) != number) return "it carries the number of another page";
  unsigned flags = load_u16(page + 10);
  if (flags != page_flag_branch && flags != page_flag_leaf) return "it is neither a branch nor a leaf";
  uint32_t lower = load_u16(page + 12), upper = load_u16(page + 14);
  if (lower < page_header_bytes || lower % 2 != 0 || upper % 2 != 0 || lower > upper || upper > page_bytes)
    return "its bounds are wrong";
  if (lower == page_header_bytes) return "it holds nothing";
  return nodes_judge(page, page_bytes, upper, flags == page_flag_leaf);
}
