/* What the decoder refuses, and with which words; what it skips. */
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

/* ---- what is refused ---- */

#define HEAD "01 c4 10 11*16 02 c4 10 22*16 "

static const struct {
  unsigned type, version;
  const char *body;
  enum status expected;
  const char *message; /* part of it */
} refusals[] = {
    {EVENT_queue_paused, 1, "82" HEAD, STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0a a1'x'", STATUS_OK, ""},
    /* types and versions */
    {0, 1, "82" HEAD, STATUS_CORRUPT, "no event has a 0"},
    {EVENT_queue_paused, 0, "82" HEAD, STATUS_CORRUPT, "no event has a 0"},
    {9, 1, "82" HEAD, STATUS_FOREIGN, "type 9 (unknown), version 1, which Orbit"},
    {EVENT_type_end, 1, "82" HEAD, STATUS_FOREIGN, "written by a newer Orbit; use that version"},
    {0xFFFF, 1, "82" HEAD, STATUS_FOREIGN, "type 65535"},
    {EVENT_queue_paused, 2, "82" HEAD, STATUS_FOREIGN, "type 18 (queue.paused), version 2"},
    /* the map */
    {EVENT_queue_paused, 1, "", STATUS_CORRUPT, "not a map"},
    {EVENT_queue_paused, 1, "c0", STATUS_CORRUPT, "not a map"},
    {EVENT_queue_paused, 1, "92 01 02", STATUS_CORRUPT, "not a map"},
    {EVENT_queue_paused, 1, "de 00 02" HEAD, STATUS_CORRUPT, "shortest"},
    {EVENT_queue_paused, 1, "df 00 00 00 02" HEAD, STATUS_CORRUPT, "shortest"},
    {EVENT_queue_paused, 1, "df 02 62 5a 00", STATUS_CORRUPT, "not a map"}, /* claims 40 million pairs */
    {EVENT_queue_paused, 1, "81" HEAD, STATUS_CORRUPT, "field actor is missing"},
    {EVENT_queue_paused, 1, "83" HEAD, STATUS_CORRUPT, "a key is not"},
    {EVENT_queue_paused, 1, "82" HEAD "00", STATUS_CORRUPT, "left over"},
    /* keys */
    {EVENT_queue_paused, 1, "83" HEAD "02 c4 10 22*16", STATUS_CORRUPT, "ascend"},
    {EVENT_queue_paused, 1, "82 02 c4 10 22*16 01 c4 10 11*16", STATUS_CORRUPT, "operation_id is missing"},
    {EVENT_queue_paused, 1, "84" HEAD "0b 00 0a a1'x'", STATUS_CORRUPT, "ascend"},
    {EVENT_queue_paused, 1, "83" HEAD "a1'x' 00", STATUS_CORRUPT, "a key is not"},
    {EVENT_queue_paused, 1, "83 00 00" HEAD, STATUS_CORRUPT, "a key is not"},
    {EVENT_queue_paused, 1, "83" HEAD "cc 0a a1'x'", STATUS_CORRUPT, "a key is not"},
    {EVENT_queue_paused, 1, "83" HEAD "ff 00", STATUS_CORRUPT, "a key is not"},
    {EVENT_queue_paused, 1, "83" HEAD "cd 01 00 00", STATUS_CORRUPT, "a key is not"},
    {EVENT_queue_paused, 1, "83" HEAD "cc ff 00", STATUS_OK, ""},
    /* ID */
    {EVENT_queue_paused, 1, "82 01 c4 0f 11*15 02 c4 10 22*16", STATUS_CORRUPT, "operation_id must be bin of 16 bytes"},
    {EVENT_queue_paused, 1, "82 01 c4 11 11*17 02 c4 10 22*16", STATUS_CORRUPT, "operation_id must be bin of 16 bytes"},
    {EVENT_queue_paused, 1, "82 01 b0 11*16 02 c4 10 22*16", STATUS_CORRUPT, "operation_id must be bin of 16 bytes"},
    {EVENT_queue_paused, 1, "82 01 c5 00 10 11*16 02 c4 10 22*16", STATUS_CORRUPT, "operation_id is not in its shortest"},
    {EVENT_queue_paused, 1, "82 01 c4 10 00*16 02 c4 10 00*16", STATUS_OK, ""}, /* required: zero is a value */
    {EVENT_queue_paused, 1, "83" HEAD "04 c4 10 00*16", STATUS_CORRUPT, "identity is zero and should"},
    {EVENT_queue_paused, 1, "82 01 c4 10 11*16 02 c4 10 22*15", STATUS_CORRUPT, "actor is broken off"},
    /* U64 */
    {EVENT_queue_paused, 1, "83" HEAD "03 7f", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "03 cf ff*8", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "03 00", STATUS_CORRUPT, "revision is zero and should"},
    {EVENT_queue_paused, 1, "83" HEAD "03 cc 7f", STATUS_CORRUPT, "revision is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "03 cd 00 ff", STATUS_CORRUPT, "revision is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "03 ce 00 00 ff ff", STATUS_CORRUPT, "revision is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "03 cf 00*4 ff*4", STATUS_CORRUPT, "revision is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "03 d0 01", STATUS_CORRUPT, "revision is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "03 d3 7f ff*7", STATUS_CORRUPT, "revision is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "03 ff", STATUS_CORRUPT, "revision must be uint"},
    {EVENT_queue_paused, 1, "83" HEAD "03 c3", STATUS_CORRUPT, "revision must be uint"},
    {EVENT_queue_paused, 1, "83" HEAD "03 cb 3f f0 00*6", STATUS_CORRUPT, "revision must be uint"},
    {EVENT_queue_paused, 1, "83" HEAD "03 c1", STATUS_CORRUPT, "revision is broken off or no msgpack"},
    {EVENT_queue_paused, 1, "83" HEAD "03 cf ff*7", STATUS_CORRUPT, "revision is broken off"},
    /* STR */
    {EVENT_queue_paused, 1, "83" HEAD "0a a0", STATUS_CORRUPT, "reason is empty and should"},
    {EVENT_queue_paused, 1, "83" HEAD "0a c4 01'x'", STATUS_CORRUPT, "reason must be str"},
    {EVENT_queue_paused, 1, "83" HEAD "0a d9 01'x'", STATUS_CORRUPT, "reason is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "0a d9 20 61*32", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0a d9 1f 61*31", STATUS_CORRUPT, "reason is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "0a da 00 20 61*32", STATUS_CORRUPT, "reason is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "0a db 00 00 00 20 61*32", STATUS_CORRUPT, "reason is not in its shortest"},
    {EVENT_queue_paused, 1, "83" HEAD "0a a2 c3 28", STATUS_CORRUPT, "reason must be UTF-8"},
    {EVENT_queue_paused, 1, "83" HEAD "0a ab'abcdefgh' ed a0 80", STATUS_CORRUPT, "reason must be UTF-8"},
    {EVENT_queue_paused, 1, "83" HEAD "0a ab'abcdefgh' e2 82 ac", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0a db ff*4", STATUS_CORRUPT, "reason is broken off"},
    {EVENT_application_created, 1, "84" HEAD "0a c4 10 33*16 0b a0", STATUS_OK, ""}, /* required: empty is a value */
    /* BOOL */
    {EVENT_node_started, 1, "84" HEAD "0a a1'1' 0b c3", STATUS_OK, ""},
    {EVENT_node_started, 1, "84" HEAD "0a a1'1' 0b c2", STATUS_CORRUPT, "clean is false and should"},
    {EVENT_node_started, 1, "84" HEAD "0a a1'1' 0b 01", STATUS_CORRUPT, "clean must be bool"},
    /* words and TIME: 0a state, 0b decision, 0d max_attempts, 0f node_id, 11 next_available_at */
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 00", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 00 0b 02 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT, "state is no word"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 07 0b 0c 0d 05 0f c4 10 44*16 11 00", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 08 0b 02 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT, "state is no word"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 0d 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT, "decision is no word"},
    {EVENT_task_requeued, 1, "87" HEAD "0a ce 00 01 00 01 0b 02 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT,
     "state is no word"},
    {EVENT_task_requeued, 1, "87" HEAD "0a ff 0b 02 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT, "state must be uint"},
    {EVENT_task_requeued, 1, "87" HEAD "0a cf 00*3 01 00*3 01 0b 02 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT,
     "state is no word"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 cf 7f ff*7", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 cf 80 00*7", STATUS_CORRUPT, "beyond any time"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d3 80 00*7", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d0 e0", STATUS_CORRUPT, "shortest"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d1 ff 80", STATUS_CORRUPT, "shortest"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d1 ff 7f", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d2 ff ff 80 00", STATUS_CORRUPT, "shortest"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d2 ff ff 7f ff", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d3 ff*4 80 00*3", STATUS_CORRUPT, "shortest"},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 d3 ff*4 7f ff*3", STATUS_OK, ""},
    {EVENT_task_requeued, 1, "87" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16 11 a1'1'", STATUS_CORRUPT,
     "next_available_at must be int"},
    {EVENT_task_requeued, 1, "86" HEAD "0a 01 0b 02 0d 05 0f c4 10 44*16", STATUS_CORRUPT, "next_available_at is missing"},
    {EVENT_task_requeued, 1, "86" HEAD "0a 01 0d 05 0f c4 10 44*16 11 00", STATUS_CORRUPT, "decision is missing"},
    /* IDS and JSON: 0d permissions, 0e queue_ids, 10 token_hash; 0e report's outcome … */
    {EVENT_credential_created, 1, "85" HEAD "0d 01 0e c4 20 55*32 10 c4 01 66", STATUS_OK, ""},
    {EVENT_credential_created, 1, "85" HEAD "0d 01 0e c4 1f 55*31 10 c4 01 66", STATUS_CORRUPT,
     "queue_ids must be 16 bytes an id"},
    {EVENT_credential_created, 1, "85" HEAD "0d 01 0e c4 00 10 c4 01 66", STATUS_CORRUPT, "queue_ids is empty and should"},
    {EVENT_credential_created, 1, "84" HEAD "0d 01 10 a1 66", STATUS_CORRUPT, "token_hash must be bin"},
    {EVENT_credential_created, 1, "84" HEAD "0d 01 10 c6 00 00 00 01 66", STATUS_CORRUPT, "token_hash is not in its shortest"},
    {EVENT_task_reviewed, 1, "89" HEAD "0a 05 0b 01 0c c4 00 0d c4 10 11*16 0e c3 0f c4 10 11*16 11 c4 10 11*16",
     STATUS_CORRUPT, "result must not be empty"},
    {EVENT_task_reviewed, 1, "89" HEAD "0a 05 0b 01 0c c4 02'{}' 0d c4 10 11*16 0e c2 0f c4 10 11*16 11 c4 10 11*16", STATUS_OK,
     ""},
    /* unknown fields are skipped, within bounds; the body's map is depth 1 */
    {EVENT_queue_paused, 1, "83" HEAD "06 c0", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "84" HEAD "0b 82 01 93 01 02 03 a1'k' c7 02 05 01 02 0c ca 00*4", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0b d8 00*17", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0b d8 00*16", STATUS_CORRUPT, "broken off"},
    {EVENT_queue_paused, 1, "83" HEAD "0b c9 00 00 00 02 05 01 02", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0b c9 00 00 00 02 05 01", STATUS_CORRUPT, "broken off"},
    {EVENT_queue_paused, 1, "83" HEAD "0b 91*7 00", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0b 91*8 00", STATUS_CORRUPT, "nested too deeply"},
    {EVENT_queue_paused, 1, "83" HEAD "0b 91*6 81 01 00", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0b 91*7 81 01 00", STATUS_CORRUPT, "nested too deeply"},
    {EVENT_queue_paused, 1, "83" HEAD "0b 92 00", STATUS_CORRUPT, "broken off"},
    {EVENT_queue_paused, 1, "83" HEAD "0b 93 91 93 00*3", STATUS_CORRUPT, "broken off"},
    {EVENT_queue_paused, 1, "83" HEAD "0b dd 00 00 00 03 00*3", STATUS_OK, ""},
    {EVENT_queue_paused, 1, "83" HEAD "0b dd 00 00 00 04 00*3", STATUS_CORRUPT, "broken off"},
    {EVENT_queue_paused, 1, "83" HEAD "0b df 02 62 5a 00 00*64", STATUS_CORRUPT, "broken off"},
    {EVENT_queue_paused, 1, "83" HEAD "0b c1", STATUS_CORRUPT, "broken off or no msgpack"},
};

static void bodies_are_judged(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    pool.used = 0;
    struct fault fault = {.message = ""};
    struct event event = {.offset = 4711};
    struct bytes record = sample_record(&pool, refusals[i].type, refusals[i].version, sample_bytes(&pool, refusals[i].body));
    enum status status = event_decode(decoder, record, &event, &fault);
    if (status != refusals[i].expected) fail_msg("%s: %s %s", refusals[i].body, status_name(status), fault.message);
    if (strstr(fault.message, refusals[i].message) == NULL) fail_msg("%s: \"%s\"", refusals[i].body, fault.message);
    if (status == STATUS_OK) continue;
    assert_int_equal(fault.status, status);
    assert_int_equal(event.offset, 4711); /* untouched */
  }
}

static void unknown_fields_leave_the_known_ones(void **state) {
  (void)state;
  pool.used = 0;
  struct event event;
  struct bytes record =
      sample_record(&pool, EVENT_queue_paused, 1, sample_bytes(&pool, "86" HEAD "03 05 07 a3'new' 0a a1'x' 20 82 01 02 03 04"));
  assert_int_equal(event_decode(decoder, record, &event, NULL), STATUS_OK);
  assert_int_equal(event.common.revision, 5);
  assert_true(bytes_equal_text(event.body.queue_paused.reason, "x"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bodies_are_judged),
      cmocka_unit_test(unknown_fields_leave_the_known_ones),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
