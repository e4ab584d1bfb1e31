/* Rows: what is written reads back the same, and nothing else reads at all. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "state/rows.h"

static uint64_t seed;

static struct id random_id(void) {
  struct id id;
  for (unsigned i = 0; i < id_bytes; i += 8) {
    uint64_t number = test_random(&seed);
    memcpy(id.bytes + i, &number, sizeof number);
  }
  return id;
}

static bool chance(void) { return test_random(&seed) % 2 == 0; }
static int64_t random_time(void) { return (int64_t)(test_random(&seed) >> 4); }

static struct task_row random_task(void) {
  struct task_row row = {.handler_hash = (uint32_t)test_random(&seed)};
  struct task *task = &row.task;
  *task = (struct task){.id = random_id(),
                        .accepted_seq = test_random(&seed),
                        .last_seq = test_random(&seed),
                        .outcome_seq = test_random(&seed),
                        .epoch = (uint16_t)test_random(&seed),
                        .created_at = random_time(),
                        .updated_at = random_time(),
                        .available_at = random_time(),
                        .start_deadline_at = random_time(),
                        .deadline_at = random_time(),
                        .cancel_requested_at = -random_time(),
                        .queue = (uint32_t)test_random(&seed),
                        .application = (uint32_t)test_random(&seed),
                        .handler = (uint32_t)test_random(&seed),
                        .revision = (uint32_t)test_random(&seed),
                        .initial_delay_ms = (uint32_t)test_random(&seed),
                        .max_delay_ms = (uint32_t)test_random(&seed),
                        .attempt_timeout_ms = (uint32_t)test_random(&seed),
                        .payload_bytes = (uint32_t)test_random(&seed),
                        .attempt_count = (uint16_t)test_random(&seed),
                        .max_attempts = (uint16_t)test_random(&seed),
                        .state = (uint8_t)(1 + test_random(&seed) % (TASK_ENUM_END - 1)),
                        .recovery_safety = (uint8_t)test_random(&seed),
                        .priority = (uint8_t)test_random(&seed),
                        .ended_as = (uint8_t)test_random(&seed),
                        .is_error = chance(),
                        .effect_uncertain = chance(),
                        .retried = chance(),
                        .scheduled = chance(),
                        .is_retry = chance()};
  if (chance()) {
    row.attempt = (struct attempt){.id = random_id(),
                                   .instance_id = random_id(),
                                   .application_id = random_id(),
                                   .leased_at = random_time(),
                                   .lease_until = random_time(),
                                   .started_at = random_time(),
                                   .attempt_deadline_at = random_time(),
                                   .lease_ms = (uint32_t)test_random(&seed)};
    row.attempt.live_until = row.attempt.lease_until;
  }
  if (chance()) row.key_id = random_id();
  if (chance()) row.business_hash = test_random(&seed) | 1;
  return row;
}

/* ---- tasks ---- */

static void a_task_reads_back_field_by_field(void **context) {
  (void)context;
  for (unsigned round = 0; round < 2000; round++) {
    struct task_row row = random_task(), back;
    uint8_t bytes[task_row_bytes_max];
    size_t size = task_row_encode(&row, bytes);
    struct bytes key = bytes_of(row.task.id.bytes, id_bytes);
    assert_int_equal(task_row_decode(key, bytes_of(bytes, size), &back), STATUS_OK);
    const struct task *a = &row.task, *b = &back.task;
#define SAME(field) assert_true(a->field == b->field)
    SAME(accepted_seq);
    SAME(last_seq);
    SAME(outcome_seq);
    SAME(is_error);
    SAME(epoch);
    SAME(created_at);
    SAME(updated_at);
    SAME(available_at);
    SAME(start_deadline_at);
    SAME(deadline_at);
    SAME(cancel_requested_at);
    SAME(queue);
    SAME(application);
    SAME(handler);
    SAME(revision);
    SAME(initial_delay_ms);
    SAME(max_delay_ms);
    SAME(attempt_timeout_ms);
    SAME(payload_bytes);
    SAME(attempt_count);
    SAME(max_attempts);
    SAME(state);
    SAME(recovery_safety);
    SAME(priority);
    SAME(ended_as);
    SAME(effect_uncertain);
    SAME(retried);
    SAME(scheduled);
    SAME(is_retry);
    assert_true(row.attempt.leased_at == back.attempt.leased_at);
    assert_true(row.attempt.lease_until == back.attempt.lease_until);
    assert_true(row.attempt.live_until == back.attempt.live_until);
    assert_true(row.attempt.started_at == back.attempt.started_at);
    assert_true(row.attempt.attempt_deadline_at == back.attempt.attempt_deadline_at);
    assert_true(row.attempt.lease_ms == back.attempt.lease_ms);
    assert_true(id_equal(&a->id, &b->id) && id_equal(&row.attempt.id, &back.attempt.id));
    assert_true(id_equal(&row.attempt.instance_id, &back.attempt.instance_id));
    assert_true(id_equal(&row.attempt.application_id, &back.attempt.application_id));
    assert_true(id_equal(&row.key_id, &back.key_id));
    assert_true(row.business_hash == back.business_hash && row.handler_hash == back.handler_hash);
    uint8_t again[task_row_bytes_max];
    assert_int_equal(task_row_encode(&back, again), size);
    assert_memory_equal(again, bytes, size);
  }
}

/* Field for field as above: a field that was added to the structure alone changes its size, and somebody comes here. */
static_assert(sizeof(struct task) == 136 && sizeof(struct attempt) == 96 && sizeof(struct queue) == 184 &&
                  sizeof(struct application) == 72 && sizeof(struct credential) == 128,
              "an object has changed: its row, this test and rows_format follow");

static void only_whole_task_rows_read(void **context) {
  (void)context;
  for (unsigned round = 0; round < 200; round++) {
    struct task_row row = random_task(), back;
    uint8_t bytes[task_row_bytes_max + 1] = {0};
    size_t size = task_row_encode(&row, bytes);
    struct bytes key = bytes_of(row.task.id.bytes, id_bytes);
    for (size_t cut = 0; cut <= size + 1; cut++) {
      uint8_t *exact = malloc(cut + 1); /* so that a read beyond it is seen */
      memcpy(exact + 1, bytes, cut);
      assert_int_equal(task_row_decode(key, bytes_of(exact + 1, cut), &back), cut == size ? STATUS_OK : STATUS_CORRUPT);
      free(exact);
    }
    assert_int_equal(task_row_decode(bytes_of(key.data, id_bytes - 1), bytes_of(bytes, size), &back), STATUS_CORRUPT);
    bytes[0]++; /* another version */
    assert_int_equal(task_row_decode(key, bytes_of(bytes, size), &back), STATUS_CORRUPT);
  }
}

static void sizes_are_as_written_down(void **context) {
  (void)context;
  struct task_row plain = {.task.state = TASK_SUCCEEDED}, full = random_task();
  uint8_t bytes[task_row_bytes_max];
  full.attempt.id = full.key_id = random_id();
  full.business_hash = 1;
  assert_int_equal(task_row_encode(&plain, bytes), 142);
  assert_int_equal(task_row_encode(&full, bytes), 142 + 84 + 16 + 8);
  assert_int_equal(meta_row_bytes, 220);
}

/* ---- objects ---- */

static void round_trip(const struct object *object, struct object *ret_back) {
  struct buffer out, again;
  buffer_init(&out, SIZE_MAX), buffer_init(&again, SIZE_MAX);
  object_row_encode(object, &out);
  assert_int_equal(object_row_decode(buffer_bytes(&out), ret_back), STATUS_OK);
  object_row_encode(ret_back, &again);
  assert_true(bytes_equal(buffer_bytes(&out), buffer_bytes(&again)));
  for (size_t cut = 0; cut < out.size; cut++) {
    struct object none;
    assert_int_equal(object_row_decode(bytes_of(out.data, cut), &none), STATUS_CORRUPT);
  }
  assert_true(id_equal(&object->id, &ret_back->id) && object->kind == ret_back->kind && object->last_seq == ret_back->last_seq);
  buffer_clear(&out), buffer_clear(&again);
}

static void a_queue_reads_back(void **context) {
  (void)context;
  struct object object = {.id = random_id(), .kind = OBJECT_QUEUE, .last_seq = test_random(&seed)}, back;
  struct queue *a = &object.as.queue, *b = &back.as.queue;
  *a = (struct queue){.id = object.id,
                      .namespace_id = random_id(),
                      .revision = 7,
                      .max_unfinished = UINT64_MAX,
                      .max_running = 3,
                      .key_concurrency = 4,
                      .rate = {5, 6, 7},
                      .lease_ms = 8,
                      .config_seq = 9,
                      .paused = true,
                      .rate_at = -10};
  for (unsigned state = 1; state < TASK_ENUM_END; state++) a->counts[state] = test_random(&seed);
  round_trip(&object, &back);
  assert_true(id_equal(&a->id, &b->id) && id_equal(&a->namespace_id, &b->namespace_id));
  SAME(revision);
  SAME(max_unfinished);
  SAME(max_running);
  SAME(key_concurrency);
  SAME(rate.tasks);
  SAME(rate.per_ms);
  SAME(rate.burst);
  SAME(lease_ms);
  SAME(config_seq);
  SAME(paused);
  SAME(rate_at);
  assert_memory_equal(a->counts, b->counts, sizeof a->counts);
}

static void an_application_reads_back(void **context) {
  (void)context;
  struct object object = {.id = random_id(), .kind = OBJECT_APPLICATION, .last_seq = test_random(&seed)}, back;
  struct application *a = &object.as.application, *b = &back.as.application;
  *a = (struct application){object.id, random_id(), 1, 2, 3, 4, true};
  round_trip(&object, &back);
  assert_true(id_equal(&a->id, &b->id) && id_equal(&a->namespace_id, &b->namespace_id));
  SAME(revision);
  SAME(max_unfinished);
  SAME(unfinished);
  SAME(config_seq);
  SAME(disabled);
}

static void a_credential_reads_back(void **context) {
  (void)context;
  struct id queues[3] = {random_id(), random_id(), random_id()};
  for (uint32_t count = 0; count <= 3; count++) {
    struct object object = {.id = random_id(), .kind = OBJECT_CREDENTIAL, .last_seq = test_random(&seed)}, back;
    struct credential *a = &object.as.credential, *b = &back.as.credential;
    *a = (struct credential){.id = object.id,
                             .namespace_id = random_id(),
                             .application_id = random_id(),
                             .permissions = UINT64_MAX,
                             .expires_at = 5,
                             .revision = 6,
                             .config_seq = 7,
                             .queue_ids = count != 0 ? queues : NULL,
                             .queue_count = count,
                             .revoked = count % 2 == 1};
    memset(a->token_hash, 0xA5, sizeof a->token_hash);
    round_trip(&object, &back);
    assert_true(id_equal(&a->id, &b->id) && id_equal(&a->namespace_id, &b->namespace_id));
    assert_true(id_equal(&a->application_id, &b->application_id));
    SAME(permissions);
    SAME(expires_at);
    SAME(revision);
    SAME(config_seq);
    SAME(revoked);
    SAME(queue_count);
    assert_true((b->queue_ids == NULL) == (count == 0));
    if (count != 0) assert_memory_equal(b->queue_ids, queues, sizeof(struct id) * count);
    assert_memory_equal(a->token_hash, b->token_hash, sizeof a->token_hash);
    free(b->queue_ids);
  }
}

static void a_subscription_reads_back(void **context) {
  (void)context;
  for (unsigned round = 0; round < 4; round++) {
    struct object object = {.id = random_id(), .kind = OBJECT_SUBSCRIPTION, .last_seq = test_random(&seed)}, back;
    struct subscription *a = &object.as.subscription, *b = &back.as.subscription;
    *a = (struct subscription){.id = object.id,
                               .namespace_id = random_id(),
                               .queue_id = round % 2 == 0 ? random_id() : (struct id){{0}},
                               .task_id = round == 0 ? random_id() : (struct id){{0}},
                               .types = {{test_random(&seed), test_random(&seed)}},
                               .position = test_random(&seed),
                               .revision = 7,
                               .config_seq = 8,
                               .name_hash = test_random(&seed),
                               .deleted = chance()};
    round_trip(&object, &back);
    assert_true(id_equal(&a->id, &b->id) && id_equal(&a->namespace_id, &b->namespace_id));
    assert_true(id_equal(&a->queue_id, &b->queue_id) && id_equal(&a->task_id, &b->task_id));
    SAME(types.bits[0]);
    SAME(types.bits[1]);
    SAME(position);
    SAME(revision);
    SAME(config_seq);
    SAME(name_hash);
    SAME(deleted);
  }
}

static void a_namespace_and_a_node_read_back(void **context) {
  (void)context;
  static const enum object_kind kinds[] = {OBJECT_NAMESPACE, OBJECT_NODE};
  for (size_t i = 0; i < 2; i++) {
    struct object object = {.id = random_id(), .kind = kinds[i], .last_seq = 11}, back;
    round_trip(&object, &back);
  }
}

static void no_other_kind_reads(void **context) {
  (void)context;
  struct object object = {.id = random_id(), .kind = OBJECT_NODE}, back;
  struct buffer out;
  buffer_init(&out, SIZE_MAX);
  object_row_encode(&object, &out);
  for (unsigned kind = 0; kind < 256; kind++) {
    out.data[1 + id_bytes] = (uint8_t)kind;
    bool lawful = kind == OBJECT_NODE || kind == OBJECT_NAMESPACE;
    assert_int_equal(object_row_decode(buffer_bytes(&out), &back), lawful ? STATUS_OK : STATUS_CORRUPT);
  }
  buffer_clear(&out);
}

/* ---- buckets, entries, where it stands ---- */

static void a_bucket_reads_back(void **context) {
  (void)context;
  char longest[word_chars_max + 1];
  memset(longest, 'h', word_chars_max);
  longest[word_chars_max] = 0;
  const char *const texts[][2] = {{"h", "v1"}, {longest, longest}, {"a", ""}, {"", "b"}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct bucket_row row = {(uint32_t)i + 1, 77, UINT32_MAX, bytes_text(texts[i][0]), bytes_text(texts[i][1])}, back;
    struct buffer out;
    uint8_t key[rows_number_bytes];
    buffer_init(&out, SIZE_MAX);
    bucket_row_encode(&row, &out);
    number_key(row.number, key);
    assert_int_equal(bucket_row_decode(bytes_of(key, sizeof key), buffer_bytes(&out), &back), STATUS_OK);
    assert_true(back.number == row.number && back.queue == 77 && back.unfinished == UINT32_MAX);
    assert_true(bytes_equal(back.handler, row.handler) && bytes_equal(back.handler_version, row.handler_version));
    for (size_t cut = 0; cut < 11 + row.handler.size; cut++)
      assert_int_equal(bucket_row_decode(bytes_of(key, sizeof key), bytes_of(out.data, cut), &back), STATUS_CORRUPT);
    buffer_clear(&out);
  }
}

static void keys_stand_in_the_order_of_numbers(void **context) {
  (void)context;
  static const uint64_t numbers[] = {1, 2, 255, 256, 65535, 65536, UINT32_MAX};
  uint8_t before[8], after[8];
  uint32_t back;
  for (size_t i = 0; i + 1 < sizeof numbers / sizeof numbers[0]; i++) {
    number_key((uint32_t)numbers[i], before), number_key((uint32_t)numbers[i + 1], after);
    assert_true(memcmp(before, after, rows_number_bytes) < 0);
    assert_true(number_key_parse(bytes_of(before, rows_number_bytes), &back) && back == numbers[i]);
    seq_key_encode(numbers[i], before), seq_key_encode(numbers[i + 1], after);
    assert_true(memcmp(before, after, sizeof before) < 0);
  }
  number_key(0, before);
  assert_false(number_key_parse(bytes_of(before, rows_number_bytes), &back));
  assert_false(number_key_parse(bytes_of(before, 3), &back));
}

static void entries_read_back(void **context) {
  (void)context;
  struct buffer receipts, audits;
  buffer_init(&receipts, SIZE_MAX), buffer_init(&audits, SIZE_MAX);
  for (uint64_t i = 1; i <= 5; i++) {
    receipt_entry_encode(&(struct receipt_entry){UINT64_MAX - i, i, i % 2 == 0}, &receipts);
    audit_entry_encode(i * 3, &audits);
  }
  assert_int_equal(receipts.size, 5 * 16);
  assert_int_equal(audits.size, 5 * 8);
  for (uint64_t i = 1; i <= 5; i++) {
    struct receipt_entry entry = receipt_entry_at(buffer_bytes(&receipts), i - 1);
    assert_true(entry.identity == UINT64_MAX - i && entry.seq == i && entry.by_task == (i % 2 == 0));
    assert_true(audit_entry_at(buffer_bytes(&audits), i - 1) == i * 3);
  }
  buffer_clear(&receipts), buffer_clear(&audits);
}

static void where_it_stands_reads_back_or_not_at_all(void **context) {
  (void)context;
  struct meta_row row, back;
  memset(&row, 0x5A, sizeof row);
  row.node_started_us = -5;
  uint8_t bytes[meta_row_bytes];
  meta_row_encode(&row, bytes);
  assert_int_equal(meta_row_decode(bytes_of(bytes, sizeof bytes), &back), STATUS_OK);
  assert_memory_equal(&row, &back, sizeof row);
  for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    assert_int_equal(meta_row_decode(bytes_of(bytes, sizeof bytes), &back), bit < 32 ? STATUS_FOREIGN : STATUS_CORRUPT);
    bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
  }
  for (size_t cut = 0; cut < sizeof bytes; cut++)
    assert_int_equal(meta_row_decode(bytes_of(bytes, cut), &back), STATUS_CORRUPT);
}

static void the_sum_tells_tables_keys_and_values_apart(void **context) {
  (void)context;
  struct bytes a = bytes_text("a"), b = bytes_text("b");
  uint64_t hash = rows_hash(ROWS_TASKS, a, b);
  assert_true(hash == rows_hash(ROWS_TASKS, a, b));
  assert_true(hash != rows_hash(ROWS_BUCKETS, a, b) && hash != rows_hash(ROWS_TASKS, b, a) &&
              hash != rows_hash(ROWS_TASKS, a, a));
}

int main(void) {
  seed = test_seed();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_task_reads_back_field_by_field),
      cmocka_unit_test(only_whole_task_rows_read),
      cmocka_unit_test(sizes_are_as_written_down),
      cmocka_unit_test(a_queue_reads_back),
      cmocka_unit_test(an_application_reads_back),
      cmocka_unit_test(a_credential_reads_back),
      cmocka_unit_test(a_subscription_reads_back),
      cmocka_unit_test(a_namespace_and_a_node_read_back),
      cmocka_unit_test(no_other_kind_reads),
      cmocka_unit_test(a_bucket_reads_back),
      cmocka_unit_test(keys_stand_in_the_order_of_numbers),
      cmocka_unit_test(entries_read_back),
      cmocka_unit_test(where_it_stands_reads_back_or_not_at_all),
      cmocka_unit_test(the_sum_tells_tables_keys_and_values_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
