/* Tests digests and secrets: what makes two requests the same and what makes them different, and known answers that hold as
 * long as logs are read. */
#include "codec/digest.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/support.h"

static const struct secret secret = {{1, 2, 3}};

static struct id id_of(const char *text) {
  struct id id;
  assert_true(id_parse(bytes_text(text), &id));
  return id;
}

#define ID_A id_of("11111111111111111111111111111111")
#define ID_B id_of("22222222222222222222222222222222")
#define ID_C id_of("33333333333333333333333333333333")

/* Digests that must all differ from each other. */
struct meanings {
  struct id ids[64];
  unsigned count;
};

static void add(struct meanings *meanings, struct id id) {
  assert_false(id_is_zero(&id));
  for (unsigned i = 0; i < meanings->count; i++)
    if (id_equal(&meanings->ids[i], &id)) fail_msg("meaning %u has the digest of meaning %u", meanings->count, i);
  assert_true(meanings->count < sizeof meanings->ids / sizeof meanings->ids[0]);
  meanings->ids[meanings->count++] = id;
}

static void identities_differ_by_each_part(void **state) {
  struct secret other = secret;
  struct id a = ID_A, b = ID_B, none = {{0}};
  struct meanings meanings = {.count = 0};
  (void)state;
  other.bytes[genesis_secret_bytes - 1] ^= 1;
  add(&meanings, identity_make(&secret, &a, "task.submit", &none, bytes_text("key")));
  add(&meanings, identity_make(&other, &a, "task.submit", &none, bytes_text("key")));
  add(&meanings, identity_make(&secret, &b, "task.submit", &none, bytes_text("key")));
  add(&meanings, identity_make(&secret, &a, "task.cancel", &none, bytes_text("key")));
  add(&meanings, identity_make(&secret, &a, "task.submit", &a, bytes_text("key")));
  add(&meanings, identity_make(&secret, &a, "task.submit", &none, bytes_text("Key")));
  add(&meanings, identity_make(&secret, &a, "task.submit", &none, bytes_text("key ")));
  add(&meanings, identity_make(&secret, &a, "task.submit", &none, bytes_text("")));
  /* a byte does not move from one part to the next */
  add(&meanings, identity_make(&secret, &a, "task.submi", &none, bytes_text("tkey")));
  struct id again = identity_make(&secret, &a, "task.submit", &none, bytes_text("key"));
  assert_true(id_equal(&again, &meanings.ids[0]));
}

static struct submit_command submission(void) {
  return (struct submit_command){
      .queue_id = ID_A,
      .handler = bytes_text("text.normalize"),
      .handler_version = bytes_text("v1"),
      .payload_version = bytes_text("v2"),
      .payload = bytes_text("{}"),
      .task_timeout_ms = 60000,
      .recovery_safety = RECOVERY_RECONCILE_ONLY,
      .max_attempts = 1,
      .attempt_timeout_ms = 60000,
  };
}

#define CHANGED(change)                                \
  do {                                                 \
    struct submit_command command = submission();      \
    change;                                            \
    add(&meanings, submit_digest(&command, &payload)); \
  } while (0)

static void submissions_differ_by_each_field(void **state) {
  struct meanings meanings = {.count = 0};
  struct id payload = ID_B;
  (void)state;
  CHANGED((void)command);
  CHANGED(command.queue_id = ID_B);
  CHANGED(command.handler = bytes_text("text.normalise"));
  CHANGED(command.handler_version = bytes_text("v2"));
  CHANGED(command.payload_version = bytes_text("v1"));
  CHANGED((command.handler = bytes_text("text.normalizev"), command.handler_version = bytes_text("1")));
  CHANGED((command.handler_version = bytes_text("v1v"), command.payload_version = bytes_text("2")));
  CHANGED(command.business_key = bytes_text("k"));
  CHANGED(command.concurrency_key = bytes_text("k"));
  CHANGED(command.business_key = bytes_text("")); /* present and empty is not absent */
  CHANGED(command.task_timeout_ms = 60001);
  CHANGED(command.available_at = 60000);
  CHANGED(command.start_deadline_at = 60000);
  CHANGED(command.recovery_safety = RECOVERY_IDEMPOTENT);
  CHANGED(command.max_attempts = 2);
  CHANGED(command.initial_delay_ms = 1);
  CHANGED(command.max_delay_ms = 1);
  CHANGED(command.attempt_timeout_ms = 59999);
  CHANGED(command.priority = 1);
  CHANGED(payload = ID_C);
}

static void a_submission_is_its_meaning_not_its_text(void **state) {
  struct submit_command a = submission(), b = submission();
  struct id payload = ID_B;
  (void)state;
  b.payload = bytes_text("{ }"); /* only the digest of its canonical form counts */
  struct id first = submit_digest(&a, &payload), second = submit_digest(&b, &payload);
  assert_true(id_equal(&first, &second));
}

static void append_part(struct buffer *out, const void *data, size_t size) {
  uint64_t length = htole64(size);
  buffer_append_char(out, 1);
  buffer_append(out, &length, sizeof length);
  buffer_append(out, data, size);
}

/* However many bytes mean something, the digest is that of all of them in a row. */
static void a_meaning_of_any_length_is_one_row_of_bytes(void **state) {
  static uint8_t reason[5000];
  struct cancel_command command = {.task_id = ID_A};
  cleanup(buffer_clear) struct buffer row;
  (void)state;
  buffer_init(&row, 2 * sizeof reason);
  for (size_t i = 0; i < sizeof reason; i++) reason[i] = (uint8_t)('a' + i % 26);
  for (size_t size = 0; size <= sizeof reason; size += size >= 900 && size < 1100 ? 1 : 100) {
    XXH128_canonical_t expected;
    buffer_reset(&row);
    append_part(&row, "task.cancel", 11);
    append_part(&row, command.task_id.bytes, id_bytes);
    command.reason = bytes_of(reason, size);
    append_part(&row, reason, size);
    buffer_append_char(&row, 0); /* expected_revision was not given */
    XXH128_canonicalFromHash(&expected, XXH3_128bits(row.data, row.size));
    struct id digest = cancel_digest(&command);
    if (memcmp(digest.bytes, expected.digest, id_bytes) != 0) fail_msg("a reason of %zu bytes", size);
  }
}

static void reports_differ_by_each_field(void **state) {
  struct attempt_ref ref = {.message_id = ID_A, .task_id = ID_A, .attempt_id = ID_B, .epoch = 1}, other;
  struct report report = {.outcome = OUTCOME_FAILED, .error_code = bytes_text("E")}, changed;
  struct id one = ID_A, two = ID_B;
  struct meanings meanings = {.count = 0};
  (void)state;
  add(&meanings, finish_digest(&ref, &report, NULL, NULL));
  add(&meanings, finish_digest(&ref, &report, &one, NULL));
  add(&meanings, finish_digest(&ref, &report, NULL, &one));
  add(&meanings, finish_digest(&ref, &report, &two, NULL));
  add(&meanings, finish_digest(&ref, &report, &one, &two));
  changed = report, changed.outcome = OUTCOME_UNKNOWN;
  add(&meanings, finish_digest(&ref, &changed, NULL, NULL));
  changed = report, changed.retryable = true;
  add(&meanings, finish_digest(&ref, &changed, NULL, NULL));
  changed = report, changed.error_code = bytes_text("F");
  add(&meanings, finish_digest(&ref, &changed, NULL, NULL));
  changed = report, changed.error_code = (struct bytes){NULL, 0}, changed.error_message = bytes_text("E");
  add(&meanings, finish_digest(&ref, &changed, NULL, NULL));
  changed = report, changed.error_message = bytes_text("");
  add(&meanings, finish_digest(&ref, &changed, NULL, NULL));
  other = ref, other.epoch = 2;
  add(&meanings, finish_digest(&other, &report, NULL, NULL));
  other = ref, other.task_id = ID_C;
  add(&meanings, finish_digest(&other, &report, NULL, NULL));
  other = ref, other.attempt_id = ID_C;
  add(&meanings, finish_digest(&other, &report, NULL, NULL));
  add(&meanings, attempt_ref_digest(&ref));
}

static void the_message_is_no_part_of_a_report(void **state) {
  struct attempt_ref ref = {.message_id = ID_A, .task_id = ID_A, .attempt_id = ID_B, .epoch = 1}, other = ref;
  struct report report = {.outcome = OUTCOME_SUCCEEDED}, same = report;
  struct id result = ID_C;
  (void)state;
  other.message_id = ID_C;
  same.identity = ID_C; /* a keyed digest of the attempt: no content */
  struct id a = finish_digest(&ref, &report, NULL, &result), b = finish_digest(&other, &same, NULL, &result);
  assert_true(id_equal(&a, &b));
  a = attempt_ref_digest(&ref), b = attempt_ref_digest(&other);
  assert_true(id_equal(&a, &b));
}

static void operations_of_people_differ_by_each_field(void **state) {
  struct meanings meanings = {.count = 0};
  struct bytes reason = bytes_text("reason"), evidence = bytes_text("evidence:1");
  (void)state;
  struct cancel_command cancel = {.task_id = ID_A, .reason = reason, .expected_revision = 4};
  add(&meanings, cancel_digest(&cancel));
  cancel.expected_revision = 5;
  add(&meanings, cancel_digest(&cancel));
  cancel.expected_revision = 0;
  add(&meanings, cancel_digest(&cancel));
  cancel.reason = evidence;
  add(&meanings, cancel_digest(&cancel));
  cancel.task_id = ID_B;
  add(&meanings, cancel_digest(&cancel));
  struct review_command review = {.task_id = ID_A,
                                  .expected_revision = 4,
                                  .reason = reason,
                                  .evidence_ref = evidence,
                                  .outcome = OUTCOME_FAILED,
                                  .result = bytes_text("1"),
                                  .result_digest = ID_A};
  add(&meanings, review_digest(&review));
  review.outcome = OUTCOME_SUCCEEDED;
  add(&meanings, review_digest(&review));
  review.result_digest = ID_B;
  add(&meanings, review_digest(&review));
  review.reason = evidence, review.evidence_ref = reason;
  add(&meanings, review_digest(&review));
  review.expected_revision = 5;
  add(&meanings, review_digest(&review));
  review.task_id = ID_B;
  add(&meanings, review_digest(&review));
  struct retry_command retry = {
      .task_id = ID_A, .expected_revision = 4, .reason = reason, .evidence_ref = evidence, .task_timeout_ms = 60000};
  add(&meanings, retry_digest(&retry));
  retry.available_at = 7;
  add(&meanings, retry_digest(&retry));
  retry.available_at = 0, retry.start_deadline_at = 7;
  add(&meanings, retry_digest(&retry));
  retry.task_timeout_ms = 60001;
  add(&meanings, retry_digest(&retry));
  retry.evidence_ref = bytes_text("evidence:2");
  add(&meanings, retry_digest(&retry));
  retry.reason = bytes_text("reasons");
  add(&meanings, retry_digest(&retry));
  retry.expected_revision = 5;
  add(&meanings, retry_digest(&retry));
  retry.task_id = ID_B;
  add(&meanings, retry_digest(&retry));
}

/* Receipts in logs are compared with digests made later: these answers must never change. */
static void known_answers(void **state) {
  struct submit_command submit = submission();
  struct attempt_ref ref = {.message_id = ID_C, .task_id = ID_A, .attempt_id = ID_B, .epoch = 7};
  struct report report = {.outcome = OUTCOME_FAILED, .retryable = true, .error_code = bytes_text("TEMPORARY_REJECTION")};
  struct cancel_command cancel = {.task_id = ID_A, .reason = bytes_text("why")};
  struct review_command review = {.task_id = ID_A,
                                  .expected_revision = 4,
                                  .reason = bytes_text("r"),
                                  .evidence_ref = bytes_text("e"),
                                  .outcome = OUTCOME_FAILED,
                                  .result_digest = ID_B};
  struct retry_command retry = {.task_id = ID_A,
                                .expected_revision = 5,
                                .reason = bytes_text("r"),
                                .evidence_ref = bytes_text("e"),
                                .task_timeout_ms = 60000};
  struct namespace_command tenant = {.name = bytes_text("n")};
  struct queue_command queue = {.name = bytes_text("n"), .max_running = 7, .key_concurrency = 1, .lease_ms = 30000};
  struct queue_command queue_change = {.id = ID_A, .expected_revision = 4, .given = GIVEN_MAX_RUNNING};
  struct application_command application = {.id = ID_A, .expected_revision = 4, .given = GIVEN_DISABLED, .disabled = true};
  struct credential_command credential = {.application_id = ID_A, .permissions = 5, .queue_ids = bytes_of(&ref.task_id, 16)};
  struct id a = ID_A, b = ID_B;
  const struct {
    struct id digest;
    const char *text;
  } answers[] = {
      {identity_make(&secret, &a, "task.cancel", &b, bytes_text("key-1")), "224e67c382718ec218ec4762790487d4"},
      {submit_digest(&submit, &b), "a914a525835561d2e981e4588e2e66bd"},
      {finish_digest(&ref, &report, &a, NULL), "c23d2efe01d5f5ed7db47d51117da5ab"},
      {attempt_ref_digest(&ref), "538af49c1fc860058fad8ca81e1d6171"},
      {cancel_digest(&cancel), "550caa57085e70da1a2b3613bf06795c"},
      {review_digest(&review), "1560dc1fb5fdf49bb6b9d430d769e5ba"},
      {retry_digest(&retry), "e4a2ceb9f309c5d2a2a90105dcfd21d9"},
      {namespace_digest(&tenant), "3e5a528597b7b651ea6802706497bb38"},
      {queue_digest(COMMAND_QUEUE_CREATE, &queue), "d55f1467eded5c5d0e38646f1e53b9da"},
      {queue_digest(COMMAND_QUEUE_CHANGE, &queue_change), "634c7645120061b49c7a338e66b4ebdb"},
      {application_digest(COMMAND_APPLICATION_CHANGE, &application), "0d27d91799d46eb1bfc9908f1d87744a"},
      {credential_digest(COMMAND_CREDENTIAL_CREATE, &credential), "990c9dfecf88cebe600c83d66ec559a9"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
    assert_string_equal(id_text(&answers[i].digest).text, answers[i].text);
}

/* The digest of a document is XXH3-128 of its canonical form: `printf '{"a":1,"b":[1.10]}' | xxhsum -H2` says the same. */
static void documents_have_the_digest_of_their_canonical_form(void **state) {
  struct json json;
  struct buffer scratch;
  (void)state;
  json_init(&json);
  buffer_init(&scratch, 4096);
  assert_int_equal(json_parse(&json, bytes_text(" { \"b\" : [ 1.10 ], \"\\u0061\":1 } "), NULL), STATUS_OK);
  struct id digest = json_digest(&json, 0, &scratch);
  assert_string_equal(id_text(&digest).text, "714bc1ff91bb9972ed7643c604c99a88");
  json_clear(&json);
  buffer_clear(&scratch);
}

/* BLAKE2b-256 without a key: b2sum -l 256 says the same of "orbit_". */
static void tokens_are_hashed_by_blake2b_256(void **state) {
  static const char expected[] = "9df3cfbe176cf47a74f3165bd5a2d5026c5f59f6cda73e4d1b82c2867f54c808";
  uint8_t hash[token_hash_bytes];
  char text[2 * token_hash_bytes + 1];
  (void)state;
  token_hash(bytes_text("orbit_"), hash);
  for (unsigned i = 0; i < token_hash_bytes; i++) (void)snprintf(text + 2 * i, 3, "%02x", hash[i]);
  assert_string_equal(text, expected);
}

static void tokens_are_fresh_and_well_formed(void **state) {
  char tokens[8][token_chars + 1];
  (void)state;
  for (unsigned i = 0; i < 8; i++) {
    memset(tokens[i], 'x', sizeof tokens[i]);
    token_make(tokens[i]);
    assert_int_equal(strlen(tokens[i]), token_chars);
    assert_memory_equal(tokens[i], "orbit_", 6);
    assert_int_equal(strspn(tokens[i] + 6, "0123456789abcdef"), 64);
    for (unsigned j = 0; j < i; j++) assert_string_not_equal(tokens[i], tokens[j]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(identities_differ_by_each_part),
      cmocka_unit_test(submissions_differ_by_each_field),
      cmocka_unit_test(a_submission_is_its_meaning_not_its_text),
      cmocka_unit_test(a_meaning_of_any_length_is_one_row_of_bytes),
      cmocka_unit_test(reports_differ_by_each_field),
      cmocka_unit_test(the_message_is_no_part_of_a_report),
      cmocka_unit_test(operations_of_people_differ_by_each_field),
      cmocka_unit_test(known_answers),
      cmocka_unit_test(documents_have_the_digest_of_their_canonical_form),
      cmocka_unit_test(tokens_are_hashed_by_blake2b_256),
      cmocka_unit_test(tokens_are_fresh_and_well_formed),
  };
  return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
