/* Owns the search for events in pages that nothing leads to: each page of the file is looked at by itself, without faith in its
 * header. Whether what looks like a record is the one that was written, its chain tells. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/event_codec.h"
#include "journal/internal.h"
#include "journal/walker_internal.h"

/* A page that holds something like events: their seqs lie between these. */
struct search_page {
  uint64_t first, last, page;
  uint32_t count, bytes;
};

struct search {
  struct search_page *pages; /* by first, then by last */
  size_t count, capacity;
  uint64_t file_pages; /* now; the snapshot may be older */
  uint64_t span_max;   /* the largest last - first */
  uint8_t *page;       /* the one that was looked at last */
  uint64_t number;
  uint8_t *value; /* a record in pages of its own */
  uint8_t genesis[genesis_record_bytes];
  bool has_genesis;
};

void search_free(struct search *search) {
  if (search == NULL) return;
  free(search->pages);
  free(search->page);
  free(search->value);
  free(search);
}

/* Something in a page that may be a node of a leaf. */
struct scrap {
  const uint8_t *key, *value;
  uint32_t key_bytes, value_bytes;
  bool outside;
};

/* The i-th, when it lies inside. A page whose bounds are damaged may have fewer or more than it says. */
static bool scrap_at(const uint8_t *page, uint32_t page_bytes, unsigned i, struct scrap *ret_scrap) {
  uint32_t at = load_u16(page + page_header_bytes + 2 * (size_t)i);
  if (at % 2 != 0 || at < page_header_bytes + 2 * (i + 1) || at + node_header_bytes > page_bytes) return false;
  struct scrap scrap = {.key = page + at + node_header_bytes, .key_bytes = load_u16(page + at + 6)};
  scrap.value_bytes = load_u16(page + at) | (uint32_t)load_u16(page + at + 2) << 16;
  scrap.outside = load_u16(page + at + 4) == node_flag_overflow;
  uint32_t room = page_bytes - at - node_header_bytes;
  if (scrap.key_bytes > room) return false;
  if ((scrap.outside ? sizeof(uint64_t) : scrap.value_bytes) > room - scrap.key_bytes) return false;
  scrap.value = scrap.key + scrap.key_bytes;
  *ret_scrap = scrap;
  return true;
}

static unsigned scrap_count(uint32_t page_bytes) { return (page_bytes - page_header_bytes) / 2; }

/* The seq of the record that the scrap may be; 0: it is none. */
static uint64_t scrap_seq(const struct scrap *scrap) {
  uint64_t seq;
  if (scrap->value_bytes < record_header_bytes || scrap->value_bytes > record_header_bytes + event_body_bytes_max) return 0;
  if (!scrap->outside) {
    uint32_t length = load_u32(scrap->value + offsetof(struct record_header, length));
    return length == scrap->value_bytes - record_header_bytes ? load_u64(scrap->value + offsetof(struct record_header, seq))
                                                              : 0;
  }
  if (scrap->key_bytes != sizeof seq) return 0;
  memcpy(&seq, scrap->key, sizeof seq);
  return seq;
}

static void genesis_look(struct search *search, const struct scrap *scrap) {
  if (search->has_genesis || scrap->outside || scrap->value_bytes != genesis_record_bytes) return;
  if (genesis_check(bytes_of(scrap->value, scrap->value_bytes), "", NULL) != STATUS_OK) return;
  memcpy(search->genesis, scrap->value, sizeof search->genesis);
  search->has_genesis = true;
}

static bool page_note(struct search *search, const struct search_page *page) {
  if (search->count == search->capacity) {
    size_t capacity = search->capacity != 0 ? search->capacity * 2 : 1024;
    struct search_page *pages = reallocarray(search->pages, capacity, sizeof *pages);
    if (pages == NULL) return false;
    search->pages = pages;
    search->capacity = capacity;
  }
  search->pages[search->count++] = *page;
  return true;
}

/* False: no memory. */
static bool page_look(struct search *search, const uint8_t *bytes, uint32_t page_bytes, uint64_t number) {
  struct search_page page = {.first = UINT64_MAX, .page = number};
  struct scrap scrap;
  for (unsigned i = 0; i < scrap_count(page_bytes); i++) {
    if (!scrap_at(bytes, page_bytes, i, &scrap)) continue;
    genesis_look(search, &scrap);
    uint64_t seq = scrap_seq(&scrap);
    /* Seqs far from the first one are noise in the room behind the nodes. */
    if (seq == 0 || seq == UINT64_MAX || (page.count != 0 && (seq > page.first + page_bytes || seq + page_bytes < page.first)))
      continue;
    if (seq < page.first) page.first = seq;
    if (seq > page.last) page.last = seq;
    page.count++;
    page.bytes += scrap.value_bytes;
  }
  if (page.count == 0) return true;
  if (page.last - page.first > search->span_max) search->span_max = page.last - page.first;
  return page_note(search, &page);
}

static int by_first(const void *left, const void *right) {
  const struct search_page *a = left, *b = right;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a->last < b->last ? -1 : a->last > b->last;
}

/* Every whole page of the file, meta pages and all. */
static enum status pages_look(struct walker *walker, struct search *search, uint8_t *piece, struct fault *fault) {
  for (uint64_t number = 0; number < search->file_pages;) {
    uint64_t count = search->file_pages - number < walker_scan_pages ? search->file_pages - number : walker_scan_pages;
    ssize_t got = pread(walker->file, piece, count * walker->page_bytes, (off_t)(number * walker->page_bytes));
    if (got < 0 && errno == EINTR) continue;
    /* A disk that cannot read a piece of the file can read others: page by page, and then on behind it. */
    if (got < (ssize_t)walker->page_bytes) {
      got = pread(walker->file, piece, walker->page_bytes, (off_t)(number * walker->page_bytes));
      if (got < (ssize_t)walker->page_bytes) {
        number++;
        continue;
      }
    }
    count = (uint64_t)got / walker->page_bytes;
    for (uint64_t i = 0; i < count; i++)
      if (!page_look(search, piece + i * walker->page_bytes, walker->page_bytes, number + i))
        return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
    number += count;
  }
  return STATUS_OK;
}

enum status walker_scan(struct walker *walker, struct fault *fault) {
  struct stat found;
  if (fstat(walker->file, &found) != 0) return journal_fault(fault, errno, walker->path, "cannot look at it");
  struct search *search = guard_calloc(1, sizeof *search);
  search_free(walker->search);
  walker->search = search;
  search->file_pages = (uint64_t)found.st_size / walker->page_bytes;
  search->number = no_page;
  search->page = guard_malloc(walker->page_bytes);
  search->value = guard_malloc(record_header_bytes + event_body_bytes_max);
  cleanup(guard_free) uint8_t *piece = guard_malloc((unsigned long)walker_scan_pages * walker->page_bytes);
  enum status status = pages_look(walker, search, piece, fault);
  if (search->count > 1) qsort(search->pages, search->count, sizeof *search->pages, by_first);
  return status;
}

/* How many pages begin at or before seq. */
static size_t pages_before(const struct search *search, uint64_t seq) {
  size_t low = 0, high = search->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (search->pages[middle].first <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool bytes_load(const struct walker *walker, uint8_t *out, size_t bytes, uint64_t at) {
  return pread(walker->file, out, bytes, (off_t)at) == (ssize_t)bytes;
}

/* The record of seq in this page that has the chain. */
static bool page_find(struct walker *walker, uint64_t number, uint64_t seq, uint64_t previous_chain, struct bytes *ret_record) {
  struct search *search = walker->search;
  struct scrap scrap;
  if (search->number != number) {
    search->number = no_page;
    if (!bytes_load(walker, search->page, walker->page_bytes, number * walker->page_bytes)) return false;
    search->number = number;
  }
  for (unsigned i = 0; i < scrap_count(walker->page_bytes); i++) {
    if (!scrap_at(search->page, walker->page_bytes, i, &scrap) || scrap_seq(&scrap) != seq) continue;
    struct bytes record = bytes_of(scrap.value, scrap.value_bytes);
    if (scrap.outside) {
      uint64_t page = load_u64(scrap.value);
      if (page >= search->file_pages ||
          !bytes_load(walker, search->value, scrap.value_bytes, page * walker->page_bytes + page_header_bytes))
        continue;
      record.data = search->value;
    }
    if (load_u32(record.data) != record.size - record_header_bytes) continue;
    if (load_u64(record.data + offsetof(struct record_header, seq)) != seq) continue;
    if (record_chain(record, previous_chain) != load_u64(record.data + offsetof(struct record_header, chain))) continue;
    *ret_record = record;
    return true;
  }
  return false;
}

enum status walker_scan_find(struct walker *walker, uint64_t seq, uint64_t previous_chain, struct bytes *ret_record) {
  const struct search *search = walker->search;
  must(search != NULL);
  for (size_t i = pages_before(search, seq); i > 0; i--) {
    const struct search_page *page = &search->pages[i - 1];
    if (seq - page->first > search->span_max) break;
    if (seq <= page->last && page_find(walker, page->page, seq, previous_chain, ret_record)) return STATUS_OK;
  }
  return STATUS_END;
}

struct bytes walker_scan_genesis(const struct walker *walker) {
  const struct search *search = walker->search;
  return search != NULL && search->has_genesis ? bytes_of(search->genesis, sizeof search->genesis) : bytes_of(NULL, 0);
}

void walker_scan_behind(const struct walker *walker, uint64_t seq, uint64_t *ret_events, uint64_t *ret_last_seq,
                        uint64_t *ret_bytes) {
  const struct search *search = walker->search;
  uint64_t events = 0, last = seq, bytes = 0;
  must(search != NULL);
  for (size_t i = 0; i < search->count; i++) {
    const struct search_page *page = &search->pages[i];
    if (page->last <= last) continue;
    uint64_t from = page->first > last ? page->first : last + 1, seen = page->last - from + 1;
    if (seen > page->count) seen = page->count;
    events += seen;
    bytes += (uint64_t)page->bytes * seen / page->count;
    last = page->last;
  }
  *ret_events = events;
  *ret_last_seq = last;
  *ret_bytes = bytes;
}
