/* Owns the simulated journal. */
#include "sim/disk.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "journal/internal.h"
#include "journal/judge.h"

struct disk {
  struct buffer bytes; /* records, one behind the other, torn ones too */
  size_t *ends;
  uint64_t count, capacity; /* whole records */
  uint8_t genesis[96];
  struct secret secret;
  struct id node_id;
  /* what the process that uses it knows */
  uint64_t last_seq, last_chain;
  int64_t last_time_us;
  /* of what was handed over */
  uint64_t handed_seq, handed_chain;
  int64_t handed_time_us;
  struct commit *queue[commits_in_flight_max]; /* oldest first */
  unsigned queued;
  bool poisoned;
  enum fate fate;
  uint64_t random;
  enum fate came; /* the last that came true since one was set */
  enum room room;
  uint64_t commits;
};

/* The users of the interface see an opaque struct journal: here it is the simulated disk. */
static struct disk *disk_of(const struct journal *journal) { return (struct disk *)(uintptr_t)journal; }

struct journal *disk_new(uint64_t seed) {
  struct disk *disk = guard_calloc(1, sizeof *disk);
  struct id_source ids;
  buffer_init(&disk->bytes, SIZE_MAX);
  id_source_init(&ids, seed);
  for (size_t at = 0; at < sizeof disk->genesis; at += id_bytes)
    memcpy(disk->genesis + at, id_source_next(&ids, 1).bytes, id_bytes);
  memcpy(disk->secret.bytes, disk->genesis, sizeof disk->secret.bytes);
  memcpy(disk->node_id.bytes, disk->genesis + sizeof disk->secret.bytes, id_bytes);
  must(disk_open((struct journal *)disk) == NULL);
  return (struct journal *)disk;
}

void disk_free(struct journal *journal) {
  struct disk *disk = disk_of(journal);
  if (disk == NULL) return;
  buffer_clear(&disk->bytes);
  free(disk->ends);
  free(disk);
}

void disk_set_fate(struct journal *journal, enum fate fate, uint64_t random) {
  struct disk *disk = disk_of(journal);
  disk->fate = fate;
  disk->random = random;
  disk->came = FATE_GOOD;
}
enum fate disk_fate_came(const struct journal *journal) { return disk_of(journal)->came; }
void disk_set_room(struct journal *journal, enum room room) { disk_of(journal)->room = room; }
enum room disk_room(const struct journal *journal) { return disk_of(journal)->room; }
uint64_t disk_count(const struct journal *journal) { return disk_of(journal)->count; }

static size_t record_start(const struct disk *disk, uint64_t seq) { return seq > 1 ? disk->ends[seq - 2] : 0; }

struct bytes disk_record(const struct journal *journal, uint64_t seq) {
  const struct disk *disk = disk_of(journal);
  must(seq >= 1 && seq <= disk->count);
  return bytes_of(disk->bytes.data + record_start(disk, seq), disk->ends[seq - 1] - record_start(disk, seq));
}

uint64_t disk_digest(const struct journal *journal) {
  return XXH3_64bits(disk_of(journal)->bytes.data, disk_of(journal)->bytes.size);
}

/* ---- the power is on again ---- */

static void count_to(struct disk *disk, uint64_t count) {
  if (count <= disk->capacity) return;
  disk->capacity = count * 2 + 1024;
  disk->ends = guard_realloc(disk->ends, disk->capacity * sizeof *disk->ends);
}

static uint32_t body_length(const uint8_t *record) {
  uint32_t length;
  memcpy(&length, record, sizeof length);
  return length;
}

/* Takes record after record as long as they are whole and follow from each other; what is behind the last whole commit goes, as
 * LMDB forgets what its meta page does not name. */
const char *disk_open(struct journal *journal) {
  struct disk *disk = disk_of(journal);
  struct judge judge;
  struct event event = {.type = EVENT_none};
  uint64_t count = 0, sound = 0;
  size_t at = 0, sound_at = 0;
  judge_begin(&judge, bytes_of(disk->genesis, sizeof disk->genesis));
  disk->last_chain = judge.chain;
  disk->last_time_us = 0;
  while (disk->bytes.size - at >= record_header_bytes) {
    uint64_t size = (uint64_t)record_header_bytes + body_length(disk->bytes.data + at);
    if (size > disk->bytes.size - at) break;
    struct bytes record = bytes_of(disk->bytes.data + at, size);
    if (judge_bytes(&judge, record) != NULL || record_header_decode(record, &event) != STATUS_OK) break;
    const char *wrong = judge_order(&judge, &event);
    if (wrong != NULL) return wrong;
    judge_take(&judge, &event);
    at += size;
    count_to(disk, ++count);
    disk->ends[count - 1] = at;
    if (!event.last_of_commit) continue;
    sound = count;
    sound_at = at;
    disk->last_chain = event.chain;
    disk->last_time_us = event.time_us;
  }
  disk->count = sound;
  disk->bytes.size = sound_at;
  disk->last_seq = disk->handed_seq = sound;
  disk->handed_chain = disk->last_chain;
  disk->handed_time_us = disk->last_time_us;
  disk->queued = 0;
  disk->poisoned = false;
  disk->fate = FATE_GOOD;
  return NULL;
}

/* ---- writing ---- */

static void put(struct disk *disk, const struct commit *commit) {
  size_t before = disk->bytes.size;
  buffer_append(&disk->bytes, commit->records.data, commit->records.size);
  must(!disk->bytes.failed);
  count_to(disk, disk->count + commit->count);
  for (uint32_t i = 0; i < commit->count; i++) disk->ends[disk->count++] = before + commit->ends[i];
}

static enum status die(struct disk *disk, struct fault *fault) {
  disk->poisoned = true;
  disk->queued = 0;
  return fault_set(fault, STATUS_IO_ERROR, NULL, "the simulated disk failed");
}

/* Some first bytes of the commits: what is torn is counted when the power is on again. */
static void put_torn(struct disk *disk, struct commit *const *commits, unsigned count, uint64_t random) {
  size_t all = 0;
  for (unsigned i = 0; i < count; i++) all += commits[i]->records.size;
  for (size_t i = 0, left = random % all; left != 0; i++) {
    size_t size = left < commits[i]->records.size ? left : commits[i]->records.size;
    buffer_append(&disk->bytes, commits[i]->records.data, size);
    left -= size;
  }
  must(!disk->bytes.failed);
}

/* One transaction of sealed commits. */
static enum status write_together(struct disk *disk, struct commit *const *commits, unsigned count, struct fault *fault) {
  if (disk->poisoned) return die(disk, fault);
  must(commits[0]->first_seq == disk->last_seq + 1);
  enum fate fate = disk->fate;
  disk->fate = FATE_GOOD;
  if (fate != FATE_GOOD) disk->came = fate;
  if (fate == FATE_LOST || fate == FATE_SYNC_LOST) return die(disk, fault);
  if (fate == FATE_TORN) {
    put_torn(disk, commits, count, disk->random);
    return die(disk, fault);
  }
  for (unsigned i = 0; i < count; i++) put(disk, commits[i]);
  if (fate != FATE_GOOD) return die(disk, fault);
  const struct commit *last = commits[count - 1];
  struct event event;
  must(record_header_decode(commit_record(last, last->first_seq + last->count - 1), &event) == STATUS_OK);
  disk->last_chain = event.chain;
  disk->last_time_us = last->time_us;
  disk->last_seq = event.seq;
  disk->commits += count;
  return STATUS_OK;
}

static void take_over(struct disk *disk, struct commit *commit) {
  must(commit->count != 0 && commit->first_seq == disk->handed_seq + 1 && commit->time_us >= disk->handed_time_us);
  disk->handed_chain = commit_seal(commit, disk->handed_chain);
  disk->handed_seq += commit->count;
  disk->handed_time_us = commit->time_us;
}

enum status journal_commit(struct journal *journal, struct commit *commit, struct fault *fault) {
  struct disk *disk = disk_of(journal);
  if (disk->poisoned) return die(disk, fault);
  if (commit->count == 0) return STATUS_OK;
  must(disk->queued == 0);
  take_over(disk, commit);
  return write_together(disk, &commit, 1, fault);
}

/* ---- commits on their way: they stay there until the simulator lets them arrive ---- */

void journal_write_behind(struct journal *journal, void (*told)(void *context), void *context) {
  (void)journal;
  (void)told; /* the simulator ticks by hand */
  (void)context;
}

/* Whoever goes away with commits on their way has decided before what becomes of them. */
void journal_quiet(struct journal *journal) { disk_of(journal)->queued = 0; }

void journal_hand_over(struct journal *journal, struct commit *commit) {
  struct disk *disk = disk_of(journal);
  must(disk->queued < commits_in_flight_max);
  take_over(disk, commit);
  if (!disk->poisoned) disk->queue[disk->queued++] = commit;
}

static enum status arrive(struct disk *disk, unsigned count, struct fault *fault) {
  enum status status = write_together(disk, disk->queue, count, fault);
  if (status != STATUS_OK) return status;
  disk->queued -= count;
  memmove(disk->queue, disk->queue + count, disk->queued * sizeof disk->queue[0]);
  return STATUS_OK;
}

unsigned disk_queued(const struct journal *journal) { return disk_of(journal)->queued; }

void disk_arrive(struct journal *journal, unsigned count) {
  must(count != 0 && count <= disk_of(journal)->queued);
  (void)arrive(disk_of(journal), count, NULL);
}

void disk_cut(struct journal *journal, uint64_t random) {
  struct disk *disk = disk_of(journal);
  if (disk->queued != 0) put_torn(disk, disk->queue, disk->queued, random);
  disk->queued = 0;
  disk->poisoned = true;
}

enum status journal_settled(struct journal *journal, uint64_t seq, uint64_t *ret_seq, struct fault *fault) {
  struct disk *disk = disk_of(journal);
  if (disk->poisoned) return die(disk, fault);
  must(seq <= disk->handed_seq);
  if (disk->last_seq < seq) {
    enum status status = arrive(disk, disk->queued, fault);
    if (status != STATUS_OK) return status;
  }
  *ret_seq = disk->last_seq;
  return STATUS_OK;
}

enum status journal_reserve(struct journal *journal, uint64_t bytes) {
  struct disk *disk = disk_of(journal);
  (void)bytes;
  if (disk->fate == FATE_EXTEND) {
    disk->poisoned = true;
    disk->came = disk->fate;
    disk->fate = FATE_GOOD;
  }
  if (disk->poisoned) return STATUS_IO_ERROR;
  return disk->room == ROOM_PLENTY ? STATUS_OK : STATUS_NO_SPACE;
}

bool journal_fits(const struct journal *journal, uint64_t bytes) {
  (void)bytes;
  return disk_of(journal)->room != ROOM_NONE;
}

/* ---- what is known of the log ---- */

const struct secret *journal_secret(const struct journal *journal) { return &disk_of(journal)->secret; }
struct id journal_node_id(const struct journal *journal) {
  return disk_of(journal)->node_id;
}
struct bytes journal_genesis(const struct journal *journal) {
  return bytes_of(disk_of(journal)->genesis, sizeof disk_of(journal)->genesis);
}
bool journal_was_clean(const struct journal *journal) {
  (void)journal;
  return false;
}
uint64_t journal_last_seq(const struct journal *journal) { return disk_of(journal)->last_seq; }
uint64_t journal_next_seq(const struct journal *journal) { return disk_of(journal)->handed_seq + 1; }
uint64_t journal_last_chain(const struct journal *journal) { return disk_of(journal)->last_chain; }
int64_t journal_last_time_us(const struct journal *journal) { return disk_of(journal)->last_time_us; }
uint64_t journal_first_chain(const struct journal *journal) {
  struct judge judge;
  judge_begin(&judge, journal_genesis(journal));
  return judge.chain;
}
void journal_stats(const struct journal *journal, struct journal_stats *ret_stats) {
  const struct disk *disk = disk_of(journal);
  *ret_stats = (struct journal_stats){.commits = disk->commits, .syncs = disk->commits, .events = disk->count};
}

/* ---- reading ---- */

struct journal_reader {
  const struct disk *disk;
  uint64_t last_seq; /* of the snapshot */
  bool live;
};

enum status journal_reader_new(struct journal *journal, struct journal_reader **ret_reader) {
  struct journal_reader *reader = guard_calloc(1, sizeof *reader);
  reader->disk = disk_of(journal);
  *ret_reader = reader;
  return STATUS_OK;
}
void journal_reader_free(struct journal_reader *reader) { free(reader); }
void journal_reader_release(struct journal_reader *reader) { reader->live = false; }
enum status journal_reader_refresh(struct journal_reader *reader) {
  reader->last_seq = reader->disk->last_seq;
  reader->live = true;
  return STATUS_OK;
}
enum status journal_reader_get(struct journal_reader *reader, uint64_t seq, struct bytes *ret_record) {
  if (!reader->live) (void)journal_reader_refresh(reader);
  if (seq == 0 || seq > reader->last_seq) return STATUS_END;
  *ret_record = disk_record((const struct journal *)reader->disk, seq);
  return STATUS_OK;
}
uint64_t journal_reader_last_seq(struct journal_reader *reader) {
  if (!reader->live) (void)journal_reader_refresh(reader);
  return reader->last_seq;
}
void journal_reap_readers(struct journal *journal) { (void)journal; }

/* ---- replay ---- */

static void decoder_free(struct event_decoder **decoder) { event_decoder_free(*decoder); }

enum status journal_replay(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, journal_visit *visit,
                           void *context, struct fault *fault) {
  cleanup(decoder_free) struct event_decoder *decoder = event_decoder_new();
  struct disk *disk = disk_of(journal);
  struct judge judge;
  struct event event;
  must(after_seq == 0); /* the simulated server has no checkpoint */
  (void)previous_chain;
  judge_begin(&judge, journal_genesis(journal));
  for (uint64_t seq = 1; seq <= disk->last_seq; seq++) {
    struct bytes record = disk_record(journal, seq);
    const char *wrong = judge_bytes(&judge, record);
    if (wrong != NULL) return fault_set(fault, STATUS_CORRUPT, NULL, "%s", wrong);
    enum status status = event_decode(decoder, record, &event, fault);
    if (status != STATUS_OK) return status;
    wrong = judge_order(&judge, &event);
    if (wrong != NULL) return fault_set(fault, STATUS_CORRUPT, NULL, "%s", wrong);
    status = visit(context, &event, record, fault);
    if (status != STATUS_OK) return status;
    judge_take(&judge, &event);
  }
  return judge.last_of_commit ? STATUS_OK : fault_set(fault, STATUS_CORRUPT, NULL, "the rest of a commit is missing");
}
