/* Random events of every type come back to the byte, with msgpack-c as the oracle; broken bytes do no harm. */
#include <msgpack.h>

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

/* ---- msgpack-c as the oracle of what was packed ---- */

static void check_object(const struct event *event, const struct event_field *field, const msgpack_object *object) {
  void *place = sample_place((struct event *)(uintptr_t)event, field);
  struct bytes span;
  uint64_t number;
  unsigned word;
  memcpy(&span, place, sizeof span);
  memcpy(&number, place, sizeof number);
  memcpy(&word, place, sizeof word);
  switch (field->type) {
    case FIELD_ID:
      assert_int_equal(object->type, MSGPACK_OBJECT_BIN);
      assert_int_equal(object->via.bin.size, id_bytes);
      assert_memory_equal(object->via.bin.ptr, place, id_bytes);
      return;
    case FIELD_STR:
      assert_int_equal(object->type, MSGPACK_OBJECT_STR);
      assert_true(bytes_equal(bytes_of(object->via.str.ptr, object->via.str.size), span));
      return;
    case FIELD_BIN:
    case FIELD_JSON:
    case FIELD_IDS:
      assert_int_equal(object->type, MSGPACK_OBJECT_BIN);
      assert_true(bytes_equal(bytes_of(object->via.bin.ptr, object->via.bin.size), span));
      return;
    case FIELD_TIME:
      assert_true(object->type == ((int64_t)number < 0 ? MSGPACK_OBJECT_NEGATIVE_INTEGER : MSGPACK_OBJECT_POSITIVE_INTEGER));
      assert_int_equal(object->via.i64, number);
      return;
    case FIELD_U64:
      assert_int_equal(object->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
      assert_int_equal(object->via.u64, number);
      return;
    case FIELD_BOOL:
      assert_int_equal(object->type, MSGPACK_OBJECT_BOOLEAN);
      assert_int_equal(object->via.boolean, *(bool *)place);
      return;
    default:
      assert_int_equal(object->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
      assert_int_equal(object->via.u64, word);
  }
}

static const struct event_field *field_of(const struct event_schema *schema, uint64_t key) {
  const struct event_field *field = key < 10 ? event_schema_common()->fields : schema->fields;
  while (field->key != 0 && field->key != key) field++;
  return field->key != 0 ? field : NULL;
}

static void check_with_oracle(struct bytes record, const struct event *event) {
  struct bytes body = sample_body(record);
  msgpack_unpacked unpacked;
  msgpack_unpacked_init(&unpacked);
  size_t used = 0;
  assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)body.data, body.size, &used), MSGPACK_UNPACK_SUCCESS);
  assert_int_equal(used, body.size);
  assert_int_equal(unpacked.data.type, MSGPACK_OBJECT_MAP);
  for (uint32_t i = 0; i < unpacked.data.via.map.size; i++) {
    const msgpack_object_kv *pair = &unpacked.data.via.map.ptr[i];
    const struct event_field *field = field_of(event_schema_find(event->type), pair->key.via.u64);
    assert_non_null(field);
    check_object(event, field, &pair->val);
  }
  msgpack_unpacked_destroy(&unpacked);
}

/* ---- random ---- */

static uint64_t seed;
static struct buffer first, second;

static void check_random_events(const struct event_schema *schema) {
  pool.used = 0;
  for (unsigned round = 0; round < 150; round++) {
    pool.used = 0;
    struct event event = sample_random_event(&pool, &seed, schema), back;
    struct fault fault = {.message = ""};
    sample_encode(&event, &first);
    check_with_oracle(buffer_bytes(&first), &event);
    if (event_decode(decoder, buffer_bytes(&first), &back, &fault) != STATUS_OK) fail_msg("%s", fault.message);
    check_with_oracle(buffer_bytes(&first), &back);
    sample_encode(&back, &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
  }
}

static void random_events_come_back(void **state) {
  (void)state;
  seed = test_seed();
  sample_each_schema(check_random_events);
}

/* Cut short anywhere, with and without a header that says so, a record is refused. The copy is as long as what is left, so that
 * AddressSanitizer sees a read beyond it. */
static void check_truncations(const struct event_schema *schema) {
  pool.used = 0;
  struct event event = sample_fixed_event(&pool, schema), back;
  sample_encode(&event, &first);
  for (size_t size = 0; size < first.size; size++) {
    uint8_t *cut = malloc(size + (size == 0));
    memcpy(cut, first.data, size);
    assert_int_equal(event_decode(decoder, bytes_of(cut, size), &back, NULL), STATUS_CORRUPT);
    if (size >= record_header_bytes) {
      uint32_t length = (uint32_t)(size - record_header_bytes);
      memcpy(cut, &length, sizeof length);
      assert_int_equal(event_decode(decoder, bytes_of(cut, size), &back, NULL), STATUS_CORRUPT);
    }
    free(cut);
  }
}

static void truncated_records_are_refused(void **state) {
  (void)state;
  sample_each_schema(check_truncations);
}

static bool has_unknown_field(struct bytes record, unsigned type) {
  struct bytes body = sample_body(record);
  msgpack_unpacked unpacked;
  msgpack_unpacked_init(&unpacked);
  size_t used = 0;
  bool unknown = false;
  assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)body.data, body.size, &used), MSGPACK_UNPACK_SUCCESS);
  for (uint32_t i = 0; i < unpacked.data.via.map.size; i++)
    unknown |= field_of(event_schema_find(type), unpacked.data.via.map.ptr[i].key.via.u64) == NULL;
  msgpack_unpacked_destroy(&unpacked);
  return unknown;
}

/* Random damage never crashes; what still decodes is printed and, unless it has unknown fields, comes back to the byte. */
static void damage_is_survived(void **state) {
  (void)state;
  struct buffer printed;
  buffer_init(&printed, 1 << 20);
  seed = test_seed();
  unsigned survived = 0;
  for (unsigned round = 0; round < 100000; round++) {
    const struct event_schema *schema = NULL;
    while (schema == NULL) schema = event_schema_find((unsigned)(test_random(&seed) % EVENT_type_end));
    pool.used = 0;
    struct event event = round % 2 != 0 ? sample_fixed_event(&pool, schema) : sample_random_event(&pool, &seed, schema), back;
    sample_encode(&event, &first);
    uint8_t *copy = malloc(first.size);
    memcpy(copy, first.data, first.size);
    for (unsigned flips = 1 + (unsigned)(test_random(&seed) % 4); flips > 0; flips--)
      copy[test_random(&seed) % first.size] = (uint8_t)test_random(&seed);
    enum status status = event_decode(decoder, bytes_of(copy, first.size), &back, NULL);
    assert_true(status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_FOREIGN);
    if (status == STATUS_OK) {
      survived++;
      buffer_reset(&printed);
      event_print_json(&back, true, true, &printed);
      assert_false(printed.failed);
      sample_encode(&back, &second);
      bool same = second.size == first.size && memcmp(second.data, copy, record_chained_bytes) == 0 &&
                  memcmp(second.data + 64, copy + 64, first.size - 64) == 0;
      assert_true(same || has_unknown_field(bytes_of(copy, first.size), back.type));
    }
    free(copy);
  }
  assert_true(survived > 1000); /* else the test says nothing about what decodes */
  buffer_clear(&printed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_events_come_back),
      cmocka_unit_test(truncated_records_are_refused),
      cmocka_unit_test(damage_is_survived),
  };
  buffer_init(&first, 1 << 20);
  buffer_init(&second, 1 << 20);
  int failures = cmocka_run_group_tests(tests, start, stop);
  buffer_clear(&first);
  buffer_clear(&second);
  return failures;
}
