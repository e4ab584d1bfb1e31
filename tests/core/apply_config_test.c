/* Queues, applications and credentials, folded from their events. */
#include <string.h>

#include "core/apply.h"
#include "support/support.h"

static struct event event_of(enum event_type type, uint64_t seq, uint64_t revision) {
  struct event event = {.type = type, .seq = seq, .stream = {{0x11}}, .common = {.revision = revision}};
  return event;
}

static void queues(void **state) {
  (void)state;
  struct queue queue = {.rate_at = 77, .counts = {[TASK_WAITING] = 5}};
  struct event event = event_of(EVENT_queue_created, 3, 1);
  event.body.queue_created = (struct event_queue_created){.namespace_id = {{0x33}},
                                                          .name = bytes_text("default"),
                                                          .max_unfinished = 1000,
                                                          .max_running = 10,
                                                          .key_concurrency = 1,
                                                          .rate_tasks = 5,
                                                          .rate_per_ms = 1000,
                                                          .rate_burst = 2,
                                                          .lease_ms = 30000};
  apply_queue(&queue, &event);
  assert_true(id_equal(&queue.id, &event.stream));
  assert_int_equal(queue.namespace_id.bytes[0], 0x33);
  assert_int_equal(queue.max_unfinished, 1000);
  assert_int_equal(queue.max_running, 10);
  assert_int_equal(queue.key_concurrency, 1);
  assert_int_equal(queue.rate.tasks, 5);
  assert_int_equal(queue.rate.per_ms, 1000);
  assert_int_equal(queue.rate.burst, 2);
  assert_int_equal(queue.lease_ms, 30000);
  assert_int_equal(queue.config_seq, 3);
  assert_int_equal(queue.revision, 1);
  assert_false(queue.paused);
  event = event_of(EVENT_audit_recorded, 4, 1);
  apply_queue(&queue, &event);
  assert_int_equal(queue.config_seq, 3); /* an audit record changes nothing */
  event = event_of(EVENT_queue_paused, 5, 2);
  apply_queue(&queue, &event);
  assert_true(queue.paused && queue.revision == 2 && queue.config_seq == 3);
  event = event_of(EVENT_queue_changed, 6, 3);
  event.body.queue_changed = (struct event_queue_changed){.name = bytes_text("slow"), .key_concurrency = 2, .lease_ms = 5000};
  apply_queue(&queue, &event);
  assert_true(queue.max_unfinished == 0 && queue.max_running == 0 && queue.rate.tasks == 0); /* the whole configuration */
  assert_true(queue.key_concurrency == 2 && queue.lease_ms == 5000 && queue.config_seq == 6 && queue.revision == 3);
  assert_true(queue.paused && queue.rate_at == 77 && queue.counts[TASK_WAITING] == 5); /* and nothing but it */
  event = event_of(EVENT_queue_resumed, 7, 4);
  apply_queue(&queue, &event);
  assert_true(!queue.paused && queue.revision == 4);
}

static void applications(void **state) {
  (void)state;
  struct application application = {.unfinished = 9};
  struct event event = event_of(EVENT_application_created, 3, 1);
  event.body.application_created =
      (struct event_application_created){.namespace_id = {{0x33}}, .name = bytes_text("app"), .max_unfinished = 7};
  apply_application(&application, &event);
  assert_true(id_equal(&application.id, &event.stream) && application.namespace_id.bytes[0] == 0x33);
  assert_true(application.max_unfinished == 7 && application.config_seq == 3 && application.revision == 1);
  event = event_of(EVENT_application_changed, 4, 2);
  event.body.application_changed = (struct event_application_changed){.name = bytes_text("app"), .disabled = true};
  apply_application(&application, &event);
  assert_true(application.disabled && application.max_unfinished == 0 && application.revision == 2);
  assert_int_equal(application.unfinished, 9);
  event = event_of(EVENT_audit_recorded, 5, 2);
  apply_application(&application, &event);
  assert_int_equal(application.config_seq, 4);
}

static void credentials(void **state) {
  (void)state;
  uint8_t first[token_hash_bytes], second[token_hash_bytes];
  memset(first, 1, sizeof first);
  memset(second, 2, sizeof second);
  struct credential credential = {.revision = 0};
  struct event event = event_of(EVENT_credential_created, 3, 1);
  event.body.credential_created = (struct event_credential_created){.namespace_id = {{0x33}},
                                                                    .application_id = {{0x44}},
                                                                    .name = bytes_text("worker"),
                                                                    .permissions = 9,
                                                                    .expires_at = 12345,
                                                                    .token_hash = bytes_of(first, sizeof first)};
  apply_credential(&credential, &event);
  assert_true(credential.namespace_id.bytes[0] == 0x33 && credential.application_id.bytes[0] == 0x44);
  assert_true(credential.permissions == 9 && credential.expires_at == 12345 && credential.config_seq == 3);
  assert_memory_equal(credential.token_hash, first, sizeof first);
  event = event_of(EVENT_credential_rotated, 4, 2);
  event.body.credential_rotated.token_hash = bytes_of(second, sizeof second);
  apply_credential(&credential, &event);
  assert_memory_equal(credential.token_hash, second, sizeof second);
  assert_true(!credential.revoked && credential.revision == 2 && credential.config_seq == 3);
  event = event_of(EVENT_credential_revoked, 5, 3);
  apply_credential(&credential, &event);
  assert_true(credential.revoked && credential.revision == 3 && credential.permissions == 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(queues),
      cmocka_unit_test(applications),
      cmocka_unit_test(credentials),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
