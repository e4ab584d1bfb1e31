/* Owns the piece of the log that is in hand, and the judgement of each record in it against the one before. */
#include "reading/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "reading/tool.h"

enum { piece_records = 1024, piece_bytes = 4 * 1024 * 1024, missing_max = 4096, id_window_records = 200000 };

struct piece_record {
  uint64_t seq;
  size_t start, size; /* in bytes; size 0: it cannot be read */
  bool fits;          /* its chain follows from the record before it */
};

struct scan {
  struct journal *journal;
  struct journal_reader *reader;
  struct event_decoder *decoder, *side_decoder;
  struct buffer bytes, side;
  struct piece_record records[piece_records];
  uint32_t count, at;
  uint64_t next, stop; /* what is not in hand yet: next towards stop, stop included */
  bool backwards, over;
  uint32_t missing; /* in a row */
};

struct scan *scan_new(struct journal *journal) {
  struct scan *scan = guard_calloc(1, sizeof *scan);
  scan->journal = journal;
  scan->over = true;
  buffer_init(&scan->bytes, SIZE_MAX);
  buffer_init(&scan->side, SIZE_MAX);
  scan->decoder = event_decoder_new();
  scan->side_decoder = event_decoder_new();
  enum status status = journal_reader_new(journal, &scan->reader);
  if (status == STATUS_OK) return scan;
  (void)tool_say(0, "%s", status == STATUS_UNAVAILABLE ? "the log's reader table is full: end some of the tools that read this log"
                                                       : "the log cannot be read: run orbit-replay verify");
  scan_free(scan);
  return NULL;
}

void scan_free(struct scan *scan) {
  if (scan == NULL) return;
  journal_reader_free(scan->reader);
  event_decoder_free(scan->decoder);
  event_decoder_free(scan->side_decoder);
  buffer_clear(&scan->bytes);
  buffer_clear(&scan->side);
  free(scan);
}

uint64_t scan_last_seq(struct scan *scan) {
  uint64_t last = journal_reader_refresh(scan->reader) == STATUS_OK ? journal_reader_last_seq(scan->reader) : 0;
  journal_reader_release(scan->reader);
  return last;
}

/* The header of seq; the snapshot stays. */
static enum status header_read(struct scan *scan, uint64_t seq, struct event *ret_header, struct bytes *ret_record) {
  enum status status = journal_reader_get(scan->reader, seq, ret_record);
  if (status == STATUS_OK) status = record_header_decode(*ret_record, ret_header);
  if (status == STATUS_OK && ret_header->seq != seq) status = STATUS_CORRUPT;
  return status;
}

uint64_t scan_seq_at(struct scan *scan, int64_t time_us) {
  struct event header;
  struct bytes record;
  (void)journal_reader_refresh(scan->reader);
  uint64_t low = 1, high = journal_reader_last_seq(scan->reader) + 1;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2, probe = middle;
    /* a damaged record tells no time: the next one that does stands for it */
    while (probe < high && header_read(scan, probe, &header, &record) != STATUS_OK) probe++;
    if (probe == high || header.time_us >= time_us) high = middle;
    else low = probe + 1;
  }
  journal_reader_release(scan->reader);
  return low;
}

/* Ids begin with the milliseconds of the commit that made them. */
uint64_t scan_seq_of_task(struct scan *scan, const struct id *task_id) {
  struct event header;
  struct bytes record;
  int64_t ms = 0;
  uint64_t found = 1;
  for (unsigned i = 0; i < 6; i++) ms = ms << 8 | task_id->bytes[i];
  uint64_t first = scan_seq_at(scan, (ms - 1) * us_per_ms), last = journal_reader_last_seq(scan->reader);
  for (uint64_t seq = first; seq <= last && seq - first < id_window_records && found == 1; seq++)
    if (header_read(scan, seq, &header, &record) == STATUS_OK && header.type == EVENT_task_accepted &&
        id_equal(&header.stream, task_id))
      found = seq;
  journal_reader_release(scan->reader);
  return found;
}

static enum status chain_read(struct scan *scan, uint64_t seq, uint64_t *ret_chain) {
  struct event header;
  struct bytes record, genesis = journal_genesis(scan->journal);
  if (seq == 0) {
    *ret_chain = XXH3_64bits(genesis.data, genesis.size);
    return STATUS_OK;
  }
  enum status status = header_read(scan, seq, &header, &record);
  if (status == STATUS_OK) *ret_chain = header.chain;
  return status;
}

enum status scan_chain(struct scan *scan, uint64_t seq, uint64_t *ret_chain) {
  enum status status = chain_read(scan, seq, ret_chain);
  journal_reader_release(scan->reader);
  return status;
}

enum status scan_get(struct scan *scan, uint64_t seq, struct event *ret_event) {
  struct event header;
  struct bytes record;
  struct fault fault;
  buffer_reset(&scan->side);
  enum status status = header_read(scan, seq, &header, &record);
  if (status == STATUS_OK) buffer_append_bytes(&scan->side, record);
  journal_reader_release(scan->reader);
  if (status != STATUS_OK) return status;
  if (scan->side.failed) return STATUS_NO_MEMORY;
  status = event_decode(scan->side_decoder, buffer_bytes(&scan->side), ret_event, &fault);
  return status;
}

/* ---- pieces ---- */

void scan_range(struct scan *scan, uint64_t first, uint64_t last, bool backwards) {
  scan->count = scan->at = scan->missing = 0;
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
  if (seq < 2 || chain_read(scan, seq - 2, &earlier) != STATUS_OK || header_read(scan, seq - 1, &header, &before) != STATUS_OK)
    return false;
  return record_chain(record, record_chain(before, earlier)) == chain;
}

/* Copies the record behind what is in hand. */
static void take_record(struct scan *scan, uint64_t seq, uint64_t *known_seq, uint64_t *known_chain) {
  struct piece_record *taken = &scan->records[scan->count++];
  struct event header;
  struct bytes record;
  *taken = (struct piece_record){.seq = seq, .start = scan->bytes.size};
  uint64_t before = *known_chain;
  bool known = *known_seq == seq - 1 || chain_read(scan, seq - 1, &before) == STATUS_OK;
  if (header_read(scan, seq, &header, &record) != STATUS_OK) return;
  taken->fits = known && record_chain(record, before) == header.chain;
  if (!taken->fits) taken->fits = fits_anyway(scan, seq, record, header.chain);
  taken->size = record.size;
  buffer_append_bytes(&scan->bytes, record);
  *known_seq = seq;
  *known_chain = header.chain;
}

static void piece_read(struct scan *scan) {
  uint64_t known_seq = UINT64_MAX, known_chain = 0;
  scan->count = scan->at = 0;
  buffer_reset(&scan->bytes);
  while (!scan->over && scan->count < piece_records && scan->bytes.size < piece_bytes) {
    uint64_t seq = scan->next;
    take_record(scan, seq, &known_seq, &known_chain);
    scan->over = seq == scan->stop;
    scan->next = scan->backwards ? seq - 1 : seq + 1;
  }
  must(!scan->bytes.failed);
  journal_reader_release(scan->reader);
}

static bool piece_ready(struct scan *scan) {
  if (scan->at == scan->count && !scan->over) piece_read(scan);
  return scan->at < scan->count;
}

static struct bytes record_at(const struct scan *scan, const struct piece_record *taken) {
  return bytes_of(scan->bytes.data + taken->start, taken->size);
}

static enum status damaged(struct scan *scan, const struct piece_record *taken, const char *what, struct fault *fault) {
  return fault_set(fault, STATUS_CORRUPT, NULL, "seq %" PRIu64 ": %s; run orbit-replay verify%s", taken->seq, what,
                   scan->over && scan->at >= scan->count ? "" : " (going on behind it)");
}

bool scan_peek(struct scan *scan, struct event *ret_header) {
  if (!piece_ready(scan)) return false;
  const struct piece_record *taken = &scan->records[scan->at];
  return taken->size != 0 && taken->fits && record_header_decode(record_at(scan, taken), ret_header) == STATUS_OK;
}

void scan_skip(struct scan *scan) {
  scan->missing = 0;
  scan->at++;
}

enum status scan_next(struct scan *scan, struct event *ret_event, struct bytes *ret_record, struct fault *fault) {
  struct fault wrong = {.message = ""};
  if (!piece_ready(scan)) return STATUS_END;
  const struct piece_record *taken = &scan->records[scan->at++];
  if (taken->size == 0) {
    if (++scan->missing < missing_max) return damaged(scan, taken, "it is missing or cannot be read", fault);
    scan->over = true;
    scan->count = scan->at;
    return fault_set(fault, STATUS_CORRUPT, NULL, "seq %" PRIu64 ": %d records in a row cannot be read; run orbit-replay salvage",
                     taken->seq, missing_max);
  }
  scan->missing = 0;
  if (!taken->fits) return damaged(scan, taken, "the chain is broken: this record or the one before it is damaged", fault);
  struct bytes record = record_at(scan, taken);
  enum status status = event_decode(scan->decoder, record, ret_event, &wrong);
  if (status == STATUS_FOREIGN)
    return fault_set(fault, status, NULL, "seq %" PRIu64 ": %.200s; use a newer orbit-audit", taken->seq, wrong.message);
  if (status != STATUS_OK) return damaged(scan, taken, wrong.message, fault);
  *ret_record = record;
  return STATUS_OK;
}
