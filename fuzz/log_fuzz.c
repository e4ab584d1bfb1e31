/* Fuzzes whole log files, as the offline tools read them: a log of real events is made once, and each input changes bytes of
 * its file (or cuts it) and walks it. Nothing in the file is believed: every record lies within its bounds, no damage ends the
 * process, the walk ends, and an untouched file has no damage. An input is a byte for the cut, then changes: page (2), place
 * (2), how many (1), bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/event_codec.h"
#include "journal/journal.h"
#include "journal/walker.h"

enum { page_bytes = 4096, commits = 40, events_per_commit = 5, change_head = 5, change_bytes_max = 32, cut_first = 240 };

static struct {
  char directory[64], data[80], file[100];
  int fd;
  uint8_t *whole; /* the file as it was made */
  size_t size;
} made = {.fd = -1};

static void remove_all(void) {
  char command[128];
  guard_close(&made.fd);
  (void)snprintf(command, sizeof command, "rm -rf '%s'", made.directory);
  if (system(command) != 0) (void)fprintf(stderr, "%s stays\n", made.directory);
}

static void commit_some(struct journal *journal, unsigned number) {
  static char text[3000];
  struct commit commit;
  struct fault fault;
  memset(text, 'a' + (int)(number % 26), sizeof text);
  commit_init(&commit);
  commit_reset(&commit, journal, INT64_C(1700000000000000) + number);
  for (unsigned i = 0; i < events_per_commit; i++) {
    struct event event = {.type = EVENT_node_started, .version = event_type_version(EVENT_node_started)};
    event.stream.bytes[0] = event.common.actor.bytes[0] = event.common.operation_id.bytes[0] = 1;
    event.common.revision = 1;
    /* Some fill a page and more, as payloads do. */
    event.body.node_started.version = bytes_of(text, number % 8 == 7 ? sizeof text : 10 + number);
    must(commit_add(&commit, &event) == STATUS_OK);
  }
  must(journal_commit(journal, &commit, &fault) == STATUS_OK);
  commit_clear(&commit);
}

static void make_log(void) {
  struct journal_options options = {.map_bytes = UINT64_C(64) << 20, .reserve_bytes = 64 * 1024, .create = true};
  struct journal *journal = NULL;
  struct fault fault = {.message = ""};
  struct stat info;
  (void)snprintf(made.directory, sizeof made.directory, "%s/orbit-log-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/var/tmp");
  must(mkdtemp(made.directory) != NULL);
  (void)snprintf(made.data, sizeof made.data, "%s/data", made.directory);
  (void)snprintf(made.file, sizeof made.file, "%s/log/data.mdb", made.data);
  must(atexit(remove_all) == 0);
  if (journal_open(made.data, &options, &journal, &fault) != STATUS_OK) (void)fprintf(stderr, "%s\n", fault.message);
  must(journal != NULL);
  for (unsigned number = 0; number < commits; number++) commit_some(journal, number);
  journal_close(journal, true);
  made.fd = open(made.file, O_RDWR | O_CLOEXEC);
  must(made.fd >= 0 && fstat(made.fd, &info) == 0);
  made.size = (size_t)info.st_size;
  made.whole = guard_malloc(made.size);
  must(pread(made.fd, made.whole, made.size, 0) == info.st_size);
}

static void put(size_t offset, const uint8_t *bytes, size_t size) {
  must(offset + size <= made.size && pwrite(made.fd, bytes, size, (off_t)offset) == (ssize_t)size);
}

/* Where the next change goes; false: there is none. */
static bool next_change(const uint8_t **at, size_t *left, size_t *ret_offset, size_t *ret_size) {
  if (*left < change_head + 1) return false;
  size_t page = ((size_t)(*at)[0] << 8 | (*at)[1]) % (made.size / page_bytes);
  size_t place = ((size_t)(*at)[2] << 8 | (*at)[3]) % page_bytes;
  size_t size = 1 + (*at)[4] % change_bytes_max;
  *at += change_head, *left -= change_head;
  if (size > *left) size = *left;
  if (size > page_bytes - place) size = page_bytes - place;
  *ret_offset = page * page_bytes + place;
  *ret_size = size;
  return true;
}

static void change(const uint8_t *data, size_t size, bool back) {
  size_t offset, count;
  while (next_change(&data, &size, &offset, &count)) {
    put(offset, back ? made.whole + offset : data, count);
    data += count, size -= count;
  }
}

static void count_damage(void *context, uint64_t page, const char *what) {
  (void)page;
  must(what[0] != 0);
  ++*(uint64_t *)context;
}

/* Reads it to the end, decodes what is there, looks each record up again. */
static void walk(bool untouched) {
  static struct event_decoder *decoder;
  uint64_t damages = 0, events = 0, seq;
  const struct walker_listener listener = {count_damage, NULL, &damages};
  struct walker *walker = NULL;
  struct walker_facts facts;
  struct fault fault = {.message = ""};
  struct bytes record;
  enum status status = walker_open(made.data, &listener, &walker, &fault);
  if (decoder == NULL) decoder = event_decoder_new();
  if (status != STATUS_OK) {
    must(!untouched && fault.message[0] != 0);
    return;
  }
  while ((status = walker_next(walker, &seq, &record)) == STATUS_OK) {
    struct event event;
    must(record.size == 0 || record.data != NULL);
    (void)event_decode(decoder, record, &event, &fault);
    must(++events <= made.size); /* each has a byte of its own at least: the walk ends */
  }
  must(status == STATUS_END || status == STATUS_UNAVAILABLE);
  walker_finish(walker);
  walker_facts(walker, &facts);
  must(facts.damages == damages);
  if (untouched) must(damages == 0 && events == commits * events_per_commit && facts.whole);
  (void)walker_get(walker, 1 + events / 2, &record);
  walker_close(walker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (made.fd < 0) {
    make_log();
    walk(true);
  }
  if (size == 0) return 0;
  bool cut = data[0] >= cut_first;
  change(data + 1, size - 1, false);
  if (cut) must(ftruncate(made.fd, (off_t)(made.size / (256 - cut_first) * (size_t)(data[0] - cut_first))) == 0);
  walk(false);
  (void)walker_check(made.data, &(struct fault){.message = ""});
  if (cut) put(0, made.whole, made.size);
  else change(data + 1, size - 1, true);
  return 0;
}
