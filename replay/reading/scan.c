/* Owns the piece of the log that is in hand, and the judgement of each record in it against the one before. */
#include "reading/scan.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "journal/walker.h"
#include "reading/tool.h"

enum {
  piece_records = 1024,
  backward_records = 64, /* are all read before the first is handed out */
  piece_bytes = 4 * 1024 * 1024,
  missing_max = 65536, /* in a row: then what the file says of its end is not believed any more */
  id_window_records = 200000,
  reopen_max = 50,
  genesis_bytes = 96
};

struct piece_record {
  uint64_t seq, last; /* seq to last are missing or cannot be read, when size is 0 */
  size_t start, size; /* in bytes */
  bool fits;          /* its chain follows from the record before it */
};

struct scan {
  char *directory;
  struct walker *walker;
  struct event_decoder *decoder, *side_decoder;
  struct buffer bytes, side;
  uint8_t genesis[genesis_bytes];
  bool has_genesis, damaged, unavailable;
  uint64_t end; /* the last seq at the last look */
  struct piece_record records[piece_records];
  uint32_t count, at;
  uint64_t next, stop; /* what is not in hand yet: next towards stop, stop included */
  bool backwards, over;
  uint64_t missing; /* in a row */
};

/* ---- opening ---- */

static void say_damage(void *context, uint64_t page, const char *what) {
  struct scan *scan = context;
  scan->damaged = true;
  (void)tool_say(0, "page %" PRIu64 ": %s; run orbit-replay verify, then salvage", page, what);
}

/* What the file says of its end is believed as far as it agrees with how many events it says it has. */
static uint64_t end_of(struct scan *scan) {
  struct walker_facts facts;
  walker_facts(scan->walker, &facts);
  if (facts.end_seq == facts.entries) return facts.end_seq;
  scan->damaged = true;
  return facts.end_seq == 0 || facts.end_seq > facts.entries ? facts.entries : facts.end_seq;
}

static enum status look(struct scan *scan, const struct walker_listener *listener, struct fault *fault) {
  struct walker *walker;
  enum status status = walker_open(scan->directory, listener, &walker, fault);
  if (status != STATUS_OK) return status;
  walker_close(scan->walker);
  scan->walker = walker;
  scan->end = end_of(scan);
  return STATUS_OK;
}

struct scan *scan_new(const char *data_directory) {
  struct scan *scan = guard_calloc(1, sizeof *scan);
  struct walker_listener listener = {.damage = say_damage, .context = scan};
  struct fault fault = {.message = ""};
  scan->directory = strdup(data_directory);
  must(scan->directory != NULL);
  scan->over = true;
  buffer_init(&scan->bytes, SIZE_MAX);
  buffer_init(&scan->side, SIZE_MAX);
  scan->decoder = event_decoder_new();
  scan->side_decoder = event_decoder_new();
  if (look(scan, &listener, &fault) != STATUS_OK) {
    (void)tool_say(0, "%s", fault.message);
    scan_free(scan);
    return NULL;
  }
  struct bytes genesis = walker_genesis(scan->walker);
  scan->has_genesis = genesis.size == sizeof scan->genesis;
  if (scan->has_genesis) memcpy(scan->genesis, genesis.data, sizeof scan->genesis);
  return scan;
}

void scan_free(struct scan *scan) {
  if (scan == NULL) return;
  walker_close(scan->walker);
  event_decoder_free(scan->decoder);
  event_decoder_free(scan->side_decoder);
  buffer_clear(&scan->bytes);
  buffer_clear(&scan->side);
  free(scan->directory);
  free(scan);
}

bool scan_is_damaged(const struct scan *scan) { return scan->damaged; }

bool scan_origin(const struct scan *scan, struct log_origin *ret_origin) {
  uint64_t created;
  if (!scan->has_genesis) return false;
  memcpy(&ret_origin->format, scan->genesis, sizeof ret_origin->format);
  memcpy(&created, scan->genesis + 8, sizeof created);
  memcpy(&ret_origin->node_id, scan->genesis + 16, sizeof ret_origin->node_id);
  ret_origin->format = le32toh(ret_origin->format);
  ret_origin->created_us = (int64_t)le64toh(created);
  return true;
}

uint64_t scan_last_seq(struct scan *scan) {
  (void)look(scan, NULL, NULL); /* when it fails, the older look still holds */
  return scan->end;
}

/* ---- single records ---- */

/* The record of seq: a span valid until the next call. A server that writes meanwhile makes a fresh look necessary. */
static enum status record_read(struct scan *scan, uint64_t seq, struct bytes *ret_record) {
  enum status status = walker_get(scan->walker, seq, ret_record);
  for (unsigned i = 0; status == STATUS_UNAVAILABLE && i < reopen_max; i++) {
    uint64_t end = scan->end;
    if (look(scan, NULL, NULL) == STATUS_OK) status = walker_get(scan->walker, seq, ret_record);
    scan->end = end;
  }
  if (status == STATUS_UNAVAILABLE) scan->unavailable = true;
  return status;
}

static enum status header_read(struct scan *scan, uint64_t seq, struct event *ret_header, struct bytes *ret_record) {
  enum status status = record_read(scan, seq, ret_record);
  if (status == STATUS_OK) status = record_header_decode(*ret_record, ret_header);
  if (status == STATUS_OK && ret_header->seq != seq) status = STATUS_CORRUPT;
  return status;
}

uint64_t scan_seq_at(struct scan *scan, int64_t time_us) {
  struct event header;
  struct bytes record;
  header.time_us = 0;
  uint64_t low = 1, high = scan->end + 1;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2, probe = middle;
    /* a damaged record tells no time: the next one that does stands for it */
    while (probe < high && header_read(scan, probe, &header, &record) != STATUS_OK) probe++;
    if (probe == high || header.time_us >= time_us) high = middle;
    else low = probe + 1;
  }
  return low;
}

/* Ids begin with the milliseconds of the commit that made them. */
uint64_t scan_seq_of_task(struct scan *scan, const struct id *task_id) {
  struct event header;
  struct bytes record;
  int64_t ms = 0;
  for (unsigned i = 0; i < 6; i++) ms = ms << 8 | task_id->bytes[i];
  uint64_t first = scan_seq_at(scan, (ms - 1) * us_per_ms);
  for (uint64_t seq = first; seq <= scan->end && seq - first < id_window_records; seq++)
    if (header_read(scan, seq, &header, &record) == STATUS_OK && header.type == EVENT_task_accepted &&
        id_equal(&header.stream, task_id))
      return seq;
  return 1;
}

enum status scan_chain(struct scan *scan, uint64_t seq, uint64_t *ret_chain) {
  struct event header;
  struct bytes record;
  if (seq == 0 && !scan->has_genesis) return STATUS_CORRUPT;
  if (seq == 0) {
    *ret_chain = XXH3_64bits(scan->genesis, sizeof scan->genesis);
    return STATUS_OK;
  }
  enum status status = header_read(scan, seq, &header, &record);
  if (status == STATUS_OK) *ret_chain = header.chain;
  return status;
}

enum status scan_record(struct scan *scan, uint64_t seq, struct bytes *ret_record) {
  struct event header;
  return header_read(scan, seq, &header, ret_record);
}

enum status scan_get(struct scan *scan, uint64_t seq, struct event *ret_event) {
  struct event header;
  struct bytes record;
  struct fault fault;
  buffer_reset(&scan->side);
  enum status status = header_read(scan, seq, &header, &record);
  if (status != STATUS_OK) return status;
  buffer_append_bytes(&scan->side, record);
  if (scan->side.failed) return STATUS_NO_MEMORY;
  return event_decode(scan->side_decoder, buffer_bytes(&scan->side), ret_event, &fault);
}

/* ---- pieces ---- */

void scan_range(struct scan *scan, uint64_t first, uint64_t last, bool backwards) {
  scan->count = scan->at = 0;
  scan->missing = 0;
  scan->backwards = backwards;
  scan->next = backwards ? last : first;
  scan->stop = backwards ? first : last;
  scan->over = first > last || last == 0;
}

/* The record before may have lost nothing but its own chain: then this one follows from what that should be. */
static bool fits_anyway(struct scan *scan, uint64_t seq, struct bytes record, uint64_t chain) {
  struct event header;
  struct bytes before;
  uint64_t earlier;
  if (seq < 2 || scan_chain(scan, seq - 2, &earlier) != STATUS_OK || header_read(scan, seq - 1, &header, &before) != STATUS_OK)
    return false;
  return record_chain(record, record_chain(before, earlier)) == chain;
}

/* What is missing in a row is one thing to tell. */
static void take_missing(struct scan *scan, uint64_t seq) {
  struct piece_record *before = scan->count != 0 ? &scan->records[scan->count - 1] : NULL;
  if (before != NULL && before->size == 0 && before->last + 1 == seq) before->last = seq;
  else scan->records[scan->count++] = (struct piece_record){.seq = seq, .last = seq};
}

/* Copies the record behind what is in hand. */
static void take_record(struct scan *scan, uint64_t seq, uint64_t *known_seq, uint64_t *known_chain) {
  struct event header;
  struct bytes record;
  uint64_t before = *known_chain;
  bool known = *known_seq == seq - 1 || scan_chain(scan, seq - 1, &before) == STATUS_OK;
  if (header_read(scan, seq, &header, &record) != STATUS_OK) {
    scan->missing++;
    take_missing(scan, seq);
    return;
  }
  struct piece_record taken = {.seq = seq, .last = seq, .start = scan->bytes.size, .size = record.size};
  taken.fits = known && record_chain(record, before) == header.chain;
  buffer_append_bytes(&scan->bytes, record);
  if (!taken.fits) taken.fits = fits_anyway(scan, seq, bytes_of(scan->bytes.data + taken.start, taken.size), header.chain);
  scan->records[scan->count++] = taken;
  scan->missing = 0;
  *known_seq = seq;
  *known_chain = header.chain;
}

/* Pieces are read in rising order, which is how the log lies in its file, also when they are handed out falling. */
static void piece_read(struct scan *scan) {
  uint64_t known_seq = UINT64_MAX, known_chain = 0, first = scan->next, last = first;
  if (scan->backwards) first = scan->next - scan->stop < backward_records ? scan->stop : scan->next - backward_records + 1;
  else last = scan->stop - scan->next < piece_records ? scan->stop : scan->next + piece_records - 1;
  scan->count = scan->at = 0;
  buffer_reset(&scan->bytes);
  uint64_t seq = first;
  for (;
       seq <= last && !scan->unavailable && scan->missing < missing_max && (scan->backwards || scan->bytes.size < piece_bytes);
       seq++)
    take_record(scan, seq, &known_seq, &known_chain);
  must(!scan->bytes.failed);
  scan->over =
      scan->unavailable || scan->missing >= missing_max || (scan->backwards ? first == scan->stop : seq == scan->stop + 1);
  scan->next = scan->backwards ? first - 1 : seq;
}

static bool piece_ready(struct scan *scan) {
  if (scan->at == scan->count && !scan->over) piece_read(scan);
  return scan->at < scan->count;
}

static const struct piece_record *in_hand(const struct scan *scan) {
  return &scan->records[scan->backwards ? scan->count - 1 - scan->at : scan->at];
}

static struct bytes record_at(const struct scan *scan, const struct piece_record *taken) {
  return bytes_of(scan->bytes.data + taken->start, taken->size);
}

static enum status damaged(struct scan *scan, const struct piece_record *taken, const char *what, struct fault *fault) {
  char until[32] = "";
  scan->damaged = true;
  if (taken->last != taken->seq) (void)snprintf(until, sizeof until, " to %" PRIu64, taken->last);
  return fault_set(fault, STATUS_CORRUPT, NULL, "seq %" PRIu64 "%s: %s; run orbit-replay verify, then salvage", taken->seq,
                   until, what);
}

bool scan_peek(struct scan *scan, struct event *ret_header) {
  if (!piece_ready(scan)) return false;
  const struct piece_record *taken = in_hand(scan);
  return taken->size != 0 && taken->fits && record_header_decode(record_at(scan, taken), ret_header) == STATUS_OK;
}

void scan_skip(struct scan *scan) { scan->at++; }

enum status scan_next(struct scan *scan, struct event *ret_event, struct bytes *ret_record, struct fault *fault) {
  struct fault wrong = {.message = ""};
  if (!piece_ready(scan)) {
    if (!scan->unavailable) return STATUS_END;
    scan->unavailable = false;
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "a server commits faster than its log can be read: try again");
  }
  const struct piece_record *taken = in_hand(scan);
  scan->at++;
  if (taken->size == 0) return damaged(scan, taken, "missing, or not to be read", fault);
  if (!taken->fits) return damaged(scan, taken, "the chain is broken: this record or the one before it is damaged", fault);
  struct bytes record = record_at(scan, taken);
  enum status status = event_decode(scan->decoder, record, ret_event, &wrong);
  if (status == STATUS_FOREIGN)
    return fault_set(fault, status, NULL, "seq %" PRIu64 ": %.200s; use a newer version of Orbit", taken->seq, wrong.message);
  if (status != STATUS_OK) return damaged(scan, taken, wrong.message, fault);
  *ret_record = record;
  return STATUS_OK;
}
