/* Records to the byte: the table, header, bodies, presence, borrowed spans, the chain, the encoder's bounds. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/guard.h"
#include "codec/event_samples.h"

static struct event_decoder *decoder;
static struct sample_pool pool;

static int start(void **state) {
  (void)state;
  decoder = event_decoder_new();
  return 0;
}

static int stop(void **state) {
  (void)state;
  event_decoder_free(decoder);
  return 0;
}

/* Fields stand in the order of their keys, each once; names fit core/event.h by construction. */
static void check_table(const struct event_schema *schema) {
  pool.used = 0;
  unsigned last = 9, count = 0;
  for (const struct event_field *field = schema->fields; field->key != 0; field++, count++) {
    assert_true(field->key > last);
    last = field->key;
    assert_true(field->offset < schema->size);
    assert_true(field->name[0] != 0 && field->doc[0] != 0);
    assert_true(field->type < FIELD_TASK_STATE || sample_words(field->type) > 0);
  }
  assert_int_equal(count, schema->field_count);
  assert_string_equal(schema->text, event_type_text(schema->type));
  assert_int_equal(schema->version, event_type_version(schema->type));
}
static void the_table_is_in_order(void **state) {
  (void)state;
  sample_each_schema(check_table);
  assert_null(event_schema_find(0));
  assert_null(event_schema_find(EVENT_type_end));
  unsigned last = 0;
  for (const struct event_field *field = event_schema_common()->fields; field->key != 0; field++) {
    assert_true(field->key > last && field->key < 10);
    last = field->key;
  }
}

/* ---- the header ---- */

static void header_stands_to_the_byte(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 4096);
  struct event event = sample_start(event_schema_find(EVENT_credential_revoked));
  event.seq = 0x1112131415161718;
  event.prev = 0x2122232425262728;
  event.time_us = 0x3132333435363738;
  event.offset = 0x41424344;
  event.last_of_commit = true;
  memset(event.stream.bytes, 0x55, id_bytes);
  sample_encode(&event, &out);
  pool.used = 0;
  struct bytes expected =
      sample_bytes(&pool,
                   "27 00 00 00  0f 00  01 00  01 00 00 00  44 43 42 41  18 17 16 15 14 13 12 11  28 27 26 25 24 23 22 21"
                   "38 37 36 35 34 33 32 31  55*16  00*8   82  01 c4 10 00*16  02 c4 10 00*16");
  assert_int_equal(out.size, 64 + 0x27);
  assert_memory_equal(out.data, expected.data, expected.size);
  struct event back;
  assert_int_equal(record_header_decode(buffer_bytes(&out), &back), STATUS_OK);
  assert_int_equal(back.type, EVENT_credential_revoked);
  assert_int_equal(back.version, 1);
  assert_int_equal(back.seq, event.seq);
  assert_int_equal(back.prev, event.prev);
  assert_int_equal(back.time_us, event.time_us);
  assert_int_equal(back.offset, event.offset);
  assert_true(back.last_of_commit);
  assert_true(id_equal(&back.stream, &event.stream));
  buffer_clear(&out);
}

static void headers_that_cannot_be(void **state) {
  (void)state;
  static const struct {
    const char *what;
    size_t at;
    uint8_t byte;
    enum status expected;
  } cases[] = {
      {"as it was", 0, 0x27, STATUS_OK},
      {"length one less", 0, 0x26, STATUS_CORRUPT},
      {"length one more", 0, 0x28, STATUS_CORRUPT},
      {"length over everything", 3, 0xFF, STATUS_CORRUPT},
      {"not last of its commit", 8, 0, STATUS_OK},
      {"reserved flag 1", 8, 2, STATUS_CORRUPT},
      {"reserved flag 31", 11, 0x80, STATUS_CORRUPT},
      {"the last time there is", 39, 0x7F, STATUS_OK},
      {"one beyond", 39, 0x80, STATUS_CORRUPT},
      {"unknown type is not judged here", 5, 0xFF, STATUS_OK},
      {"unknown version is not judged here", 7, 0xFF, STATUS_OK},
  };
  struct bytes body = sample_bytes(&pool, "82 01 c4 10 00*16 02 c4 10 00*16");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pool.used = 0;
    struct bytes record = sample_record(&pool, EVENT_credential_revoked, 1, body);
    uint8_t copy[256];
    memcpy(copy, record.data, record.size);
    copy[cases[i].at] = cases[i].byte;
    struct event event = {.seq = 77};
    enum status status = record_header_decode(bytes_of(copy, record.size), &event);
    if (status != cases[i].expected) fail_msg("%s: %s", cases[i].what, status_name(status));
    if (status != STATUS_OK) assert_int_equal(event.seq, 77);
  }
}

static void sizes_of_records(void **state) {
  (void)state;
  uint8_t *large = calloc(1, record_header_bytes + event_body_bytes_max + 1);
  struct event event;
  assert_int_equal(record_header_decode(bytes_of(NULL, 0), &event), STATUS_CORRUPT);
  assert_int_equal(record_header_decode(bytes_of(large, record_header_bytes - 1), &event), STATUS_CORRUPT);
  assert_int_equal(record_header_decode(bytes_of(large, record_header_bytes), &event), STATUS_OK);
  large[2] = 0x10; /* 1 MiB */
  assert_int_equal(record_header_decode(bytes_of(large, record_header_bytes + event_body_bytes_max), &event), STATUS_OK);
  large[0] = 1;
  assert_int_equal(record_header_decode(bytes_of(large, record_header_bytes + event_body_bytes_max + 1), &event),
                   STATUS_CORRUPT);
  free(large);
}

/* ---- bodies ---- */

static void bodies_stand_to_the_byte(void **state) {
  (void)state;
  struct event paused = sample_start(event_schema_find(EVENT_queue_paused));
  memset(paused.common.operation_id.bytes, 0x11, id_bytes);
  memset(paused.common.actor.bytes, 0x22, id_bytes);
  struct event reasoned = paused, empty = paused;
  reasoned.common.revision = 300;
  reasoned.body.queue_paused.reason = bytes_text("né");
  empty.body.queue_paused.reason = bytes_text("");
  struct event requeued = sample_start(event_schema_find(EVENT_task_requeued));
  requeued.body.task_requeued.state = TASK_WAITING;
  requeued.body.task_requeued.decision = DECISION_RETRYABLE_FAILURE;
  requeued.body.task_requeued.max_attempts = 128;
  requeued.body.task_requeued.effect_uncertain = true;
  requeued.body.task_requeued.next_available_at = 0x100000000;
  struct event failed = sample_start(event_schema_find(EVENT_task_failed));
  failed.body.task_failed.state = TASK_FAILED;
  failed.body.task_failed.decision = DECISION_CANCEL_CONFIRMED;
  failed.body.task_failed.next_available_at = -33;
  struct event revoked = sample_start(event_schema_find(EVENT_credential_created));
  uint8_t ids[32];
  memset(ids, 0x77, sizeof ids);
  revoked.body.credential_created.queue_ids = bytes_of(ids, 32);
  revoked.body.credential_created.token_hash = bytes_of(ids, 0);
  const struct {
    const struct event *event;
    const char *body;
  } cases[] = {
      {&paused, "82 01 c4 10 11*16 02 c4 10 22*16"},
      {&empty, "82 01 c4 10 11*16 02 c4 10 22*16"},
      {&reasoned, "84 01 c4 10 11*16 02 c4 10 22*16 03 cd 01 2c 0a a3 6e c3 a9"},
      {&requeued, "88 01 c4 10 00*16 02 c4 10 00*16 0a 01 0b 02 0d cc 80 0e c3 0f c4 10 00*16 11 cf 00 00 00 01 00 00 00 00"},
      {&failed, "87 01 c4 10 00*16 02 c4 10 00*16 0a 06 0b 0c 0d 00 0f c4 10 00*16 11 d0 df"},
      {&revoked, "85 01 c4 10 00*16 02 c4 10 00*16 0d 00 0e c4 20 77*32 10 c4 00"},
  };
  struct buffer out;
  buffer_init(&out, 4096);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pool.used = 0;
    sample_encode(cases[i].event, &out);
    struct bytes body = sample_body(buffer_bytes(&out)), expected = sample_bytes(&pool, cases[i].body);
    assert_int_equal(body.size, expected.size);
    assert_memory_equal(body.data, expected.data, expected.size);
  }
  buffer_clear(&out);
}

static bool place_is_zero(const struct event *event, const struct event_field *field) {
  static const uint8_t zero[16];
  size_t size = field->type == FIELD_BOOL ? 1 : field->type >= FIELD_TASK_STATE ? 4 : field->type >= FIELD_U64 ? 8 : 16;
  return memcmp(sample_place((struct event *)(uintptr_t)event, field), zero, size) == 0;
}

/* Each optional field alone is there or is not; each required one is always there. */
static void check_presence(const struct event_schema *schema) {
  pool.used = 0;
  struct buffer out;
  struct event full = sample_fixed_event(&pool, schema), back;
  buffer_init(&out, 1 << 16);
  const struct event_field *const tables[] = {event_schema_common()->fields, schema->fields};
  for (unsigned table = 0; table < 2; table++) {
    for (const struct event_field *field = tables[table]; field->key != 0; field++) {
      if (field->required) continue;
      struct event without = full;
      size_t size = field->type == FIELD_BOOL ? 1 : field->type >= FIELD_TASK_STATE ? 4 : field->type >= FIELD_U64 ? 8 : 16;
      memset(sample_place(&without, field), 0, size);
      sample_encode(&full, &out);
      size_t full_size = out.size;
      sample_encode(&without, &out);
      assert_true(out.size < full_size);
      assert_int_equal(event_decode(decoder, buffer_bytes(&out), &back, NULL), STATUS_OK);
      assert_true(place_is_zero(&back, field));
    }
  }
  sample_encode(&full, &out);
  assert_int_equal(event_decode(decoder, buffer_bytes(&out), &back, NULL), STATUS_OK);
  for (const struct event_field *field = schema->fields; field->key != 0; field++) assert_false(place_is_zero(&back, field));
  buffer_clear(&out);
}
static void optional_fields_are_left_out(void **state) {
  (void)state;
  sample_each_schema(check_presence);
}

/* ---- spans ---- */

static struct bytes spans_record;

static void check_span(const struct event *event, const struct event_field *field) {
  struct bytes span;
  if (field->type < FIELD_BIN || field->type > FIELD_IDS) return;
  memcpy(&span, sample_place((struct event *)(uintptr_t)event, field), sizeof span);
  assert_true(span.size != 0);
  assert_true(span.data > spans_record.data + record_header_bytes);
  assert_true(span.data + span.size <= spans_record.data + spans_record.size);
}

/* Every span points into the record, so that it lives as long as that and no longer than that. */
static void check_borrowing(const struct event_schema *schema) {
  pool.used = 0;
  struct buffer out;
  struct event event = sample_fixed_event(&pool, schema), back;
  buffer_init(&out, 1 << 16);
  sample_encode(&event, &out);
  spans_record = buffer_bytes(&out);
  struct event_decoder *other = event_decoder_new();
  assert_int_equal(event_decode(other, spans_record, &back, NULL), STATUS_OK);
  event_decoder_free(other);
  for (const struct event_field *field = schema->fields; field->key != 0; field++) check_span(&back, field);
  buffer_clear(&out);
}
static void spans_borrow_from_the_record(void **state) {
  (void)state;
  sample_each_schema(check_borrowing);
}

static void empty_required_text_is_present(void **state) {
  (void)state;
  struct event event = sample_start(event_schema_find(EVENT_namespace_created)), back;
  struct buffer out;
  buffer_init(&out, 4096);
  sample_encode(&event, &out);
  assert_int_equal(event_decode(decoder, buffer_bytes(&out), &back, NULL), STATUS_OK);
  assert_non_null(back.body.namespace_created.name.data);
  assert_int_equal(back.body.namespace_created.name.size, 0);
  buffer_clear(&out);
}

/* Texts and documents on both sides of the sizes at which their heads grow. */
static void sizes_grow_their_heads(void **state) {
  (void)state;
  static const struct {
    size_t size, reason_head, payload_head;
  } cases[] = {
      {1, 1, 2}, {31, 1, 2}, {32, 2, 2}, {255, 2, 2}, {256, 3, 3}, {65535, 3, 3}, {65536, 5, 5}, {document_bytes_max, 5, 5},
  };
  uint8_t *text = guard_malloc(document_bytes_max);
  memset(text, '7', document_bytes_max);
  struct buffer out;
  buffer_init(&out, 1 << 20);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct event event = sample_start(event_schema_find(EVENT_audit_recorded)), back;
    sample_encode(&event, &out);
    size_t empty = out.size;
    event.body.audit_recorded.reason = bytes_of(text, cases[i].size);
    event.body.audit_recorded.after = bytes_of(text, cases[i].size);
    sample_encode(&event, &out);
    assert_int_equal(out.size - empty, 2 + 2 * cases[i].size + cases[i].reason_head + cases[i].payload_head);
    assert_int_equal(event_decode(decoder, buffer_bytes(&out), &back, NULL), STATUS_OK);
    assert_true(bytes_equal(back.body.audit_recorded.reason, event.body.audit_recorded.reason));
    assert_true(bytes_equal(back.body.audit_recorded.after, event.body.audit_recorded.after));
  }
  free(text);
  buffer_clear(&out);
}

/* ---- the chain ---- */

static void chain_is_as_documented(void **state) {
  (void)state;
  pool.used = 0;
  struct event event = sample_fixed_event(&pool, event_schema_find(EVENT_task_accepted));
  struct buffer out;
  buffer_init(&out, 1 << 16);
  sample_encode(&event, &out);
  uint64_t previous = UINT64_C(0xFEDCBA9876543210);
  uint64_t chain = record_seal(out.data, out.size, false, 5, previous);
  /* The same by the streaming interface, and with seed 0 by the plain one. */
  XXH3_state_t *hash = XXH3_createState();
  XXH3_64bits_reset_withSeed(hash, previous);
  XXH3_64bits_update(hash, out.data, 20);
  XXH3_64bits_update(hash, out.data + 20, 36);
  uint64_t head = XXH3_64bits_digest(hash);
  XXH3_64bits_reset_withSeed(hash, head);
  for (size_t i = 64; i < out.size; i++) XXH3_64bits_update(hash, out.data + i, 1);
  assert_int_equal(chain, XXH3_64bits_digest(hash));
  XXH3_freeState(hash);
  assert_int_equal(record_chain(buffer_bytes(&out), previous), chain);
  uint64_t zero_seeded = XXH3_64bits(out.data, 56);
  assert_int_equal(record_chain(buffer_bytes(&out), 0), XXH3_64bits_withSeed(out.data + 64, out.size - 64, zero_seeded));
  struct event back;
  assert_int_equal(event_decode(decoder, buffer_bytes(&out), &back, NULL), STATUS_OK);
  assert_int_equal(back.chain, chain);
  assert_false(back.last_of_commit);
  assert_int_equal(back.offset, 5);
  buffer_clear(&out);
}

static void chain_finds_every_flipped_bit(void **state) {
  (void)state;
  pool.used = 0;
  struct event event = sample_fixed_event(&pool, event_schema_find(EVENT_task_leased));
  struct buffer out;
  buffer_init(&out, 1 << 16);
  sample_encode(&event, &out);
  uint64_t chain = record_seal(out.data, out.size, true, 0, 1);
  assert_true(record_chain(buffer_bytes(&out), 2) != chain);
  for (size_t bit = 0; bit < 8 * out.size; bit++) {
    out.data[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    bool own = bit / 8 >= record_chained_bytes && bit / 8 < record_header_bytes;
    assert_true((record_chain(buffer_bytes(&out), 1) == chain) == own);
    out.data[bit / 8] ^= (uint8_t)(1U << (bit % 8));
  }
  buffer_clear(&out);
}

/* ---- the encoder's own bounds ---- */

static void full_buffer_appends_nothing(void **state) {
  (void)state;
  pool.used = 0;
  struct event event = sample_fixed_event(&pool, event_schema_find(EVENT_task_accepted));
  struct buffer out;
  buffer_init(&out, 300);
  buffer_append_text(&out, "before");
  assert_int_equal(record_encode(&event, &out), STATUS_NO_MEMORY);
  assert_true(out.failed);
  assert_int_equal(out.size, 6);
  buffer_clear(&out);
}

static void records_stand_behind_each_other(void **state) {
  (void)state;
  struct event event = sample_start(event_schema_find(EVENT_credential_revoked)), back;
  struct buffer out;
  buffer_init(&out, 4096);
  for (event.seq = 1; event.seq <= 3; event.seq++) assert_int_equal(record_encode(&event, &out), STATUS_OK);
  assert_int_equal(out.size % 3, 0);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(event_decode(decoder, bytes_of(out.data + i * out.size / 3, out.size / 3), &back, NULL), STATUS_OK);
    assert_int_equal(back.seq, i + 1);
  }
  buffer_clear(&out);
}

/* The largest document that an event may hold, and the fault of one byte more is a programmer's. */
static void encode_in_child(const struct event *event, bool expect_abort) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct buffer out;
    buffer_init(&out, 4U << 20);
    (void)close(2);
    (void)signal(SIGABRT, SIG_DFL);
    _exit(record_encode(event, &out) == STATUS_OK ? 0 : 1);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  if (expect_abort) assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGABRT);
  else assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

static void impossible_values_are_programmers_errors(void **state) {
  (void)state;
  const struct event good = sample_start(event_schema_find(EVENT_queue_paused));
  encode_in_child(&good, false);
  struct event event = good;
  event.type = (enum event_type)9;
  encode_in_child(&event, true);
  event = good;
  event.version = 0;
  encode_in_child(&event, true);
  event.version = 2;
  encode_in_child(&event, true);
  event = good;
  event.time_us = -1;
  encode_in_child(&event, true);
  event = good;
  event.body.queue_paused.reason = bytes_text("\xC3");
  encode_in_child(&event, true);
  event = sample_start(event_schema_find(EVENT_task_cancelled));
  event.body.task_cancelled.state = TASK_CANCELLED;
  encode_in_child(&event, true); /* no decision */
  event.body.task_cancelled.decision = DECISION_CANCEL_REQUESTED;
  encode_in_child(&event, false);
  event.body.task_cancelled.decision = DECISION_ENUM_END;
  encode_in_child(&event, true);
  uint8_t *large = calloc(1, event_body_bytes_max);
  event = good;
  event.body.queue_paused.reason = bytes_of(large, event_body_bytes_max - 45); /* 1 + 2 × 19 + 1 + 5 bytes go to the rest */
  encode_in_child(&event, false);
  event.body.queue_paused.reason.size++;
  encode_in_child(&event, true);
  free(large);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_is_in_order),           cmocka_unit_test(header_stands_to_the_byte),
      cmocka_unit_test(headers_that_cannot_be),          cmocka_unit_test(sizes_of_records),
      cmocka_unit_test(bodies_stand_to_the_byte),        cmocka_unit_test(optional_fields_are_left_out),
      cmocka_unit_test(spans_borrow_from_the_record),    cmocka_unit_test(empty_required_text_is_present),
      cmocka_unit_test(sizes_grow_their_heads),          cmocka_unit_test(chain_is_as_documented),
      cmocka_unit_test(chain_finds_every_flipped_bit),   cmocka_unit_test(full_buffer_appends_nothing),
      cmocka_unit_test(records_stand_behind_each_other), cmocka_unit_test(impossible_values_are_programmers_errors),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
