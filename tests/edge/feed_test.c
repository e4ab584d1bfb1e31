/* What a reader of the feed is shown, over every type of event that there is: its own tenant's, in its own queues, and nothing
 * secret; in order, through the window over the newest events and before it. */
#include "edge/feed.h"
#include "codec/event_samples.h"
#include "codec/json.h"
#include "core/apply.h"

enum { events_max = 4 * 128 + feed_window_events * 2 + 64 };

struct log {
  struct buffer records[events_max]; /* by seq */
  uint64_t end;
  struct history *history;
  struct sample_pool pool;
};

static struct id id_of(unsigned kind, unsigned number) {
  struct id id = {{0}};
  id.bytes[0] = (uint8_t)kind;
  id.bytes[14] = (uint8_t)(number >> 8);
  id.bytes[15] = (uint8_t)number;
  return id;
}

enum { TENANT = 1, QUEUE, STREAM };

static enum status get(void *context, uint64_t seq, struct bytes *ret_record) {
  struct log *log = context;
  if (seq == 0 || seq > log->end) return STATUS_END;
  *ret_record = buffer_bytes(&log->records[seq]);
  return STATUS_OK;
}

static int open_log(void **context) {
  struct log *log = calloc(1, sizeof *log);
  log->history = history_new();
  *context = log;
  return 0;
}

static int close_log(void **context) {
  struct log *log = *context;
  for (uint64_t seq = 1; seq <= log->end; seq++) buffer_clear(&log->records[seq]);
  history_free(log->history);
  free(log);
  return 0;
}

static uint64_t append(struct log *log, struct event *event, struct id stream, uint64_t prev) {
  assert_true(log->end + 1 < events_max);
  event->seq = ++log->end;
  event->prev = prev;
  event->offset = 0;
  event->stream = stream;
  buffer_init(&log->records[log->end], 1 << 20);
  assert_int_equal(record_encode(event, &log->records[log->end]), STATUS_OK);
  log->pool.used = 0;
  return log->end;
}

static struct event sample(struct log *log, enum event_type type) {
  return sample_fixed_event(&log->pool, event_schema_find(type));
}

/* What the stream of this type begins with. */
static enum event_type first_of(enum event_type type) {
  const char *name = event_type_text(type);
  if (strncmp(name, "queue.", 6) == 0) return EVENT_queue_created;
  return strncmp(name, "schedule.", 9) == 0 ? EVENT_schedule_created : EVENT_task_accepted;
}

static void set_owner(struct event *event, struct id tenant, struct id queue) {
  if (event->type == EVENT_task_accepted) {
    event->body.task_accepted.namespace_id = tenant;
    event->body.task_accepted.queue_id = queue;
  } else if (event->type == EVENT_queue_created) {
    event->body.queue_created.namespace_id = tenant;
  } else if (event->type == EVENT_schedule_created) {
    event->body.schedule_created.namespace_id = tenant;
    event->body.schedule_created.queue_id = queue;
  } else if (event->type == EVENT_schedule_skipped) {
    event->body.schedule_skipped.namespace_id = tenant;
    event->body.schedule_skipped.queue_id = queue;
  }
}

/* One event of the type in a stream of its own, behind the event that such a stream begins with. Returns its seq. */
static uint64_t append_type(struct log *log, enum event_type type, unsigned tenant, unsigned queue, unsigned number) {
  struct id owner = id_of(TENANT, tenant), in = id_of(QUEUE, queue);
  enum event_type first = first_of(type);
  struct id stream = first == EVENT_queue_created ? in : id_of(STREAM, number);
  struct event event = sample(log, first);
  set_owner(&event, owner, in);
  uint64_t seq = append(log, &event, stream, 0);
  if (type == first) return seq;
  event = sample(log, type);
  set_owner(&event, owner, in);
  return append(log, &event, stream, seq);
}

/* A schedule with many triggers behind it: whose it is is told by the newest of them, not by the whole of its history. */
static void a_trigger_tells_whose_it_is(void **context) {
  struct log *log = *context;
  struct id owner = id_of(TENANT, 1), in = id_of(QUEUE, 11), stream = id_of(STREAM, 1);
  struct event created = sample(log, EVENT_schedule_created);
  set_owner(&created, id_of(TENANT, 9), id_of(QUEUE, 99)); /* were it read, it would tell something else */
  uint64_t last = append(log, &created, stream, 0);
  struct event accepted = sample(log, EVENT_task_accepted);
  set_owner(&accepted, owner, in);
  accepted.body.task_accepted.schedule_id = stream;
  (void)append(log, &accepted, id_of(STREAM, 2), 0);
  struct event triggered = sample(log, EVENT_schedule_triggered);
  last = append(log, &triggered, stream, last);
  struct event paused = sample(log, EVENT_schedule_paused);
  last = append(log, &paused, stream, last);
  struct owners *owners = owners_new();
  struct owner found;
  paused.seq = last;
  assert_int_equal(owners_find(owners, log->history, (struct record_source){get, log}, &paused, &found), STATUS_OK);
  assert_true(id_equal(&found.namespace_id, &owner) && id_equal(&found.queue_id, &in));
  owners_free(owners);
}

/* Another task's stream that is remembered in the same place, and is alike in its last byte. */
static struct id neighbour_of(const struct id *id) {
  struct id other = *id;
  for (uint32_t number = 1;; number++) {
    memcpy(other.bytes + 4, &number, sizeof number);
    if (id_hash(&other) % feed_owners_max == id_hash(id) % feed_owners_max) return other;
  }
}

/* Two tasks of two tenants that share a place, in turn: what is remembered of one is never said of the other. */
static void neighbours_are_not_mixed_up(void **context) {
  struct log *log = *context;
  struct owners *owners = owners_new();
  struct id streams[2] = {id_of(STREAM, 1)};
  struct event accepted[2];
  streams[1] = neighbour_of(&streams[0]);
  for (unsigned i = 0; i < 2; i++) {
    accepted[i] = sample(log, EVENT_task_accepted);
    set_owner(&accepted[i], id_of(TENANT, 1 + i), id_of(QUEUE, 11 + i));
    (void)append(log, &accepted[i], streams[i], 0);
  }
  for (unsigned turn = 0; turn < 6; turn++) {
    unsigned i = turn / 2 % 2; /* twice the one, then twice the other: read, and remembered */
    struct id tenant = id_of(TENANT, 1 + i), queue = id_of(QUEUE, 11 + i);
    struct owner found;
    assert_int_equal(owners_find(owners, log->history, (struct record_source){get, log}, &accepted[i], &found), STATUS_OK);
    assert_true(id_equal(&found.namespace_id, &tenant) && id_equal(&found.queue_id, &queue));
  }
  owners_free(owners);
}

static struct feed *begun(struct log *log) {
  struct feed *feed = feed_new();
  assert_int_equal(feed_begin(feed, log->history, (struct record_source){get, log}, log->end), STATUS_OK);
  assert_int_equal(feed_end(feed), log->end);
  return feed;
}

/* The seqs that the reader is shown; checks that they rise and that the reader ends at the end. */
static uint64_t read_all(struct feed *feed, struct feed_reader *reader, bool shown[events_max]) {
  uint64_t count = 0, last = reader->after;
  memset(shown, 0, sizeof(bool) * events_max);
  for (;;) {
    enum feed_found found;
    struct feed_event event;
    uint32_t looks = 7; /* it is asked again and again */
    assert_int_equal(feed_next(feed, reader, &looks, &found, &event), STATUS_OK);
    if (found == FEED_AT_END) break;
    if (found == FEED_ENOUGH) {
      assert_int_equal(looks, 0);
      continue;
    }
    assert_true(event.seq > last && reader->after == event.seq);
    last = event.seq;
    shown[event.seq] = true;
    count++;
  }
  assert_int_equal(reader->after, feed_end(feed));
  return count;
}

/* Every type for two tenants with two queues each: a reader sees those of its tenant, of its queues, that the feed shows. */
static void each_sees_its_own_alone(void **context) {
  struct log *log = *context;
  struct mark {
    enum event_type type;
    unsigned tenant, queue;
  };
  struct mark *marks = calloc(events_max, sizeof *marks);
  unsigned number = 0, types = 0;
  for (unsigned type = 1; type < EVENT_type_end; type++) {
    if (event_schema_find(type) == NULL) continue;
    types++;
    for (unsigned tenant = 1; tenant <= 2; tenant++)
      for (unsigned queue = 1; queue <= 2; queue++) {
        uint64_t before = log->end;
        uint64_t seq = append_type(log, (enum event_type)type, tenant, 10 * tenant + queue, ++number);
        marks[seq] = (struct mark){(enum event_type)type, tenant, queue};
        if (seq == before + 2) marks[before + 1] = (struct mark){first_of((enum event_type)type), tenant, queue};
      }
  }
  assert_true(types >= 30);
  struct feed *feed = begun(log);
  bool *shown = calloc(events_max, sizeof *shown);
  for (unsigned tenant = 1; tenant <= 3; tenant++)
    for (unsigned scope = 0; scope <= 2; scope++) { /* 0: every queue */
      struct id queue = id_of(QUEUE, 10 * tenant + scope);
      struct feed_reader reader = {.namespace_id = id_of(TENANT, tenant)};
      if (scope != 0) reader.scope = &queue, reader.scope_count = 1;
      (void)read_all(feed, &reader, shown);
      for (uint64_t seq = 1; seq <= log->end; seq++) {
        const struct mark *mark = &marks[seq];
        bool expected = feed_shows_type(mark->type) && mark->tenant == tenant && (scope == 0 || mark->queue == scope);
        if (shown[seq] != expected)
          fail_msg("%s of tenant %u, queue %u: shown %d to tenant %u, scope %u", event_type_text(mark->type), mark->tenant,
                   mark->queue, shown[seq], tenant, scope);
      }
    }
  free(shown);
  free(marks);
  feed_free(feed);
}

/* What is written is strict JSON and holds nothing that a token or an identity could be looked up by, nor the payload. */
static void nothing_secret_is_written(void **context) {
  struct log *log = *context;
  struct feed *feed;
  struct json json;
  struct fault fault;
  struct buffer out;
  unsigned number = 0, written = 0;
  for (unsigned type = 1; type < EVENT_type_end; type++)
    if (event_schema_find(type) != NULL) (void)append_type(log, (enum event_type)type, 1, 11, ++number);
  feed = begun(log);
  json_init_answers(&json);
  buffer_init(&out, 1 << 20);
  struct feed_reader reader = {.namespace_id = id_of(TENANT, 1)};
  for (;; written++) {
    enum feed_found found;
    struct feed_event event;
    uint32_t looks = events_max;
    assert_int_equal(feed_next(feed, &reader, &looks, &found, &event), STATUS_OK);
    if (found == FEED_AT_END) break;
    buffer_reset(&out);
    assert_int_equal(feed_write(feed, &out, &event), STATUS_OK);
    if (json_parse(&json, buffer_bytes(&out), &fault) != STATUS_OK) fail_msg("%s", fault.message);
    uint32_t data = json_member(&json, 0, "data");
    assert_true(data != 0 && json_member(&json, data, "operation_id") != 0);
    static const char *const never[] = {"identity", "digest", "report_identity", "token_hash", "payload"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) assert_int_equal(json_member(&json, data, never[i]), 0);
    assert_true(event.type != EVENT_task_accepted || json_member(&json, data, "payload_bytes") != 0);
    assert_true(bytes_equal_text(json_string(&json, json_member(&json, 0, "type")), event_type_text(event.type)));
    bool of_task = first_of(event.type) == EVENT_task_accepted;
    assert_int_equal(json_member(&json, 0, "task_id") != 0, of_task);
  }
  assert_true(written > 18);
  buffer_clear(&out);
  json_clear(&json);
  feed_free(feed);
}

/* A filter of each type alone, of a queue, of a task. */
static void filters_pass_what_they_name(void **context) {
  struct log *log = *context;
  bool *shown = calloc(events_max, sizeof *shown);
  unsigned number = 0;
  for (unsigned type = 1; type < EVENT_type_end; type++)
    if (feed_shows_type((enum event_type)type))
      for (unsigned queue = 11; queue <= 12; queue++) (void)append_type(log, (enum event_type)type, 1, queue, ++number);
  struct feed *feed = begun(log);
  for (unsigned type = 1; type < EVENT_type_end; type++) {
    struct feed_reader reader = {.namespace_id = id_of(TENANT, 1)};
    if (!feed_shows_type((enum event_type)type)) continue;
    assert_true(feed_types_add(&reader.filter.types, bytes_text(event_type_text((enum event_type)type))));
    uint64_t all = read_all(feed, &reader, shown);
    assert_true(all >= 2);
    reader.after = 0;
    reader.filter.queue_id = id_of(QUEUE, 12);
    assert_int_equal(read_all(feed, &reader, shown) * 2, all);
  }
  for (unsigned task = 1; task <= number; task++) {
    struct feed_reader reader = {.namespace_id = id_of(TENANT, 1), .filter.task_id = id_of(STREAM, task)};
    assert_true(read_all(feed, &reader, shown) <= 2);
  }
  free(shown);
  feed_free(feed);
}

/* The same is shown whether it lies in the window or before it, whether the window came to it event by event or in one leap. */
static void the_window_changes_nothing(void **context) {
  struct log *log = *context;
  bool *shown = calloc(events_max, sizeof *shown), *again = calloc(events_max, sizeof *again);
  static const enum event_type kinds[] = {EVENT_task_accepted, EVENT_task_failed, EVENT_audit_recorded, EVENT_queue_paused};
  struct feed *slow = feed_new();
  struct feed_reader follower = {.namespace_id = id_of(TENANT, 1)};
  uint64_t followed = 0, step = 1;
  unsigned number = 0;
  while (log->end < feed_window_events * 2) {
    for (uint64_t i = 0; i < step; i++) {
      number++;
      (void)append_type(log, kinds[number % 4], 1 + number / 4 % 2, 100 + number, number);
    }
    step = step * 2 % 97;
    assert_int_equal(feed_begin(slow, log->history, (struct record_source){get, log}, log->end), STATUS_OK);
    followed += read_all(slow, &follower, shown);
  }
  struct feed *leap = begun(log);
  struct feed_reader reader = {.namespace_id = id_of(TENANT, 1)};
  uint64_t count = read_all(leap, &reader, shown);
  assert_true(count > 500 && count == followed);
  reader.after = 0;
  assert_int_equal(read_all(slow, &reader, again), count);
  assert_memory_equal(shown, again, sizeof(bool) * events_max);
  for (uint64_t after = 1; after < log->end; after += 211) { /* from anywhere */
    reader.after = after;
    (void)read_all(leap, &reader, again);
    for (uint64_t seq = 1; seq <= log->end; seq++) assert_int_equal(again[seq], shown[seq] && seq > after);
  }
  feed_free(slow);
  feed_free(leap);
  free(shown), free(again);
}

/* A decision is told with the report that it was made from, when there is one. */
static void a_result_brings_its_report(void **context) {
  struct log *log = *context;
  struct id stream = id_of(STREAM, 1), operation = id_of(9, 9);
  struct event event = sample(log, EVENT_task_accepted);
  struct buffer out;
  buffer_init(&out, 1 << 20);
  set_owner(&event, id_of(TENANT, 1), id_of(QUEUE, 11));
  uint64_t first = append(log, &event, stream, 0);
  static const struct {
    enum event_type type;
    const char *says, *says_not;
  } rows[] = {
      {EVENT_task_succeeded, ",\"result\":{\"result\":[1.10,", "\"error\":"},
      {EVENT_task_failed, ",\"error\":{\"code\":\"error_code", "\"result\":"},
      {EVENT_task_review_required, ",\"error\":{\"code\":\"error_code", "\"result\":"},
      {EVENT_task_requeued, "\"details\":{\"error_details\":[1.10,", "\"result\":"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (unsigned own = 0; own < 2; own++) { /* of another operation: it is not what this was decided from */
      event = sample(log, EVENT_attempt_result);
      event.common.operation_id = own != 0 ? operation : id_of(9, 8);
      uint64_t report = append(log, &event, stream, first);
      event = sample(log, rows[i].type);
      event.common.operation_id = operation;
      event.seq = ++log->end;
      event.prev = report;
      event.offset = 1;
      event.stream = stream;
      buffer_init(&log->records[log->end], 1 << 20);
      assert_int_equal(record_encode(&event, &log->records[log->end]), STATUS_OK);
      log->pool.used = 0;
      struct feed *feed = begun(log);
      struct feed_event found = {.seq = log->end, .type = rows[i].type, .stream = stream};
      buffer_reset(&out);
      assert_int_equal(feed_write(feed, &out, &found), STATUS_OK);
      buffer_append_char(&out, '\0');
      assert_int_equal(strstr((char *)out.data, rows[i].says) != NULL, own);
      assert_null(strstr((char *)out.data, rows[i].says_not));
      feed_free(feed);
    }
  buffer_clear(&out);
}

static void a_damaged_stream_is_no_owner(void **context) {
  struct log *log = *context;
  struct event event = sample(log, EVENT_task_failed);
  (void)append(log, &event, id_of(STREAM, 1), 0); /* begins with no acceptance */
  struct feed *feed = feed_new();
  assert_int_equal(feed_begin(feed, log->history, (struct record_source){get, log}, log->end), STATUS_CORRUPT);
  feed_free(feed);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_log, close_log)
  const struct CMUnitTest tests[] = {
      ROW(each_sees_its_own_alone),    ROW(a_trigger_tells_whose_it_is),  ROW(neighbours_are_not_mixed_up),
      ROW(nothing_secret_is_written),  ROW(filters_pass_what_they_name),  ROW(the_window_changes_nothing),
      ROW(a_result_brings_its_report), ROW(a_damaged_stream_is_no_owner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
