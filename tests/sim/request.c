/* Owns the texts of the simulated world and what it means for two requests to be the same. */
#include "sim/request.h"

#include <stdio.h>
#include <string.h>

static struct bytes one_of(const char *const *texts, unsigned count, unsigned number) {
  return bytes_text(texts[number % count]);
}

struct bytes text_payload(unsigned number) {
  static const char *const texts[texts_max] = {
      "{\"n\":1.10}",
      "{\"n\":9007199254740993}",
      "[1,2,3]",
      "\"text\"",
      "{\"a\":{\"b\":[true,false,null]}}",
      "0",
      "{\"n\":1e400}",
      "{\"deep\":[[[[[[[[]]]]]]]],\"wide\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"};
  return one_of(texts, texts_max, number);
}

struct bytes text_result(unsigned number) {
  static const char *const texts[] = {"{\"done\":true}", "{\"confirmed\":true,\"sequence\":9007199254740993}", "7", "[]"};
  return one_of(texts, 4, number);
}

struct bytes text_details(unsigned number) {
  static const char *const texts[] = {"{\"reason_ref\":\"a\"}", "{\"reason_ref\":\"b\"}", "1.10", "[]"};
  return one_of(texts, 4, number);
}

struct bytes text_reason(unsigned number) {
  static const char *const texts[] = {"no longer wanted", "looked at the books", "safe to do again", "\xc3\xbc"};
  return one_of(texts, 4, number);
}

struct bytes text_evidence(unsigned number) {
  static const char *const texts[] = {"evidence:1", "evidence:2", "evidence:3", "evidence:4"};
  return one_of(texts, 4, number);
}

struct bytes text_name(void) {
  return bytes_text("name");
}

struct bytes text_handler(unsigned number) {
  static const char *const texts[handlers_offered_max] = {"prepare", "send", "settle"};
  return one_of(texts, handlers_offered_max, number);
}

struct bytes text_concurrency_key(unsigned number) {
  static const char *const texts[] = {"red", "green", "blue"};
  return number == 0 ? (struct bytes){NULL, 0} : one_of(texts, 3, number - 1);
}

struct bytes text_business_key(unsigned number) {
  static const char *const texts[] = {"order:1", "order:2", "\xc3\xbc"};
  return number == 0 ? (struct bytes){NULL, 0} : one_of(texts, 3, number - 1);
}

struct bytes text_cron(unsigned shape) {
  static const char *const texts[cron_shapes_max] = {"* * * * *",  "*/5 * * * *",  "30 * * * *",
                                                     "15 2 * * *", "0 12 * * MON", "@hourly"};
  return one_of(texts, cron_shapes_max, shape);
}

struct bytes text_subscription(unsigned name) {
  static const char *const texts[subscription_names_max] = {"bills", "mails", "all", "\xc3\xbc"};
  return one_of(texts, subscription_names_max, name);
}

struct bytes text_types(unsigned number) {
  static const char *const texts[type_lists_max - 1] = {
      "task.accepted", "task.succeeded,task.failed,task.review_required,task.cancelled,task.reviewed",
      "attempt.result,evidence.recorded", "queue.created,queue.paused,schedule.triggered,schedule.skipped", "task.leased"};
  return number == 0 ? (struct bytes){NULL, 0} : one_of(texts, type_lists_max - 1, number - 1);
}

struct token_text text_token(uint64_t number) {
  struct token_text token;
  (void)snprintf(token.text, sizeof token.text, "orbit_simulated_%llu", (unsigned long long)number);
  return token;
}

struct id instance_id_of(unsigned instance) {
  struct id id;
  memset(id.bytes, (int)instance + 1, id_bytes);
  return id;
}

struct id message_id_of(uint64_t key) {
  struct id id;
  memset(id.bytes, 0xA5, id_bytes);
  memcpy(id.bytes, &key, sizeof key);
  return id;
}

/* ---- sameness ---- */

static bool same_submission(const struct request *a, const struct request *b) {
  return a->queue == b->queue && a->handler == b->handler && a->concurrency_key == b->concurrency_key &&
         a->business_key == b->business_key && a->priority == b->priority && a->idempotent == b->idempotent &&
         a->text == b->text && a->max_attempts == b->max_attempts && a->initial_delay_ms == b->initial_delay_ms &&
         a->max_delay_ms == b->max_delay_ms && a->attempt_timeout_ms == b->attempt_timeout_ms &&
         a->task_timeout_ms == b->task_timeout_ms && a->available_at == b->available_at &&
         a->start_deadline_at == b->start_deadline_at;
}

static bool same_attempt(const struct request *a, const struct request *b) {
  return id_equal(&a->task_id, &b->task_id) && id_equal(&a->attempt_id, &b->attempt_id) && a->epoch == b->epoch;
}

static bool same_change(const struct request *a, const struct request *b) {
  static const unsigned bits[limits_max] = {GIVEN_MAX_UNFINISHED, GIVEN_MAX_RUNNING, GIVEN_KEY_CONCURRENCY, GIVEN_RATE,
                                            GIVEN_RATE,           GIVEN_RATE,        GIVEN_LEASE_MS};
  if (a->queue != b->queue || a->given != b->given || a->expected_revision != b->expected_revision) return false;
  for (unsigned i = 0; i < limits_max; i++)
    if ((a->given & bits[i]) != 0 && a->limits[i] != b->limits[i]) return false;
  return true;
}

static bool same_queue(const struct request *a, const struct request *b) {
  return a->text == b->text && memcmp(a->limits, b->limits, sizeof a->limits) == 0;
}

static bool same_application(const struct request *a, const struct request *b) {
  if (a->administered.object != b->administered.object || a->given != b->given || a->expected_revision != b->expected_revision)
    return false;
  return ((a->given & GIVEN_MAX_UNFINISHED) == 0 || a->limits[LIMIT_UNFINISHED] == b->limits[LIMIT_UNFINISHED]) &&
         ((a->given & GIVEN_DISABLED) == 0 || a->administered.disabled == b->administered.disabled);
}

/* A new token is no part of what is meant. */
static bool same_credential(const struct request *a, const struct request *b) {
  return a->administered.object == b->administered.object && a->administered.narrow == b->administered.narrow &&
         a->administered.expires_at == b->administered.expires_at && a->text == b->text;
}

/* What the tasks of a schedule shall be. */
static bool same_template(const struct request *a, const struct request *b) {
  struct request template = *b;
  template.queue = a->queue;
  template.available_at = a->available_at;
  template.start_deadline_at = a->start_deadline_at;
  return same_submission(a, &template);
}

static bool same_plan(const struct request *a, const struct request *b) {
  const struct planned *x = &a->planned, *y = &b->planned;
  unsigned given = a->kind == COMMAND_SCHEDULE_CREATE ? ~0U : a->given;
  if (a->given != b->given || a->expected_revision != b->expected_revision || x->by_clock != y->by_clock) return false;
  if (a->kind == COMMAND_SCHEDULE_CREATE && (a->queue != b->queue || x->paused != y->paused)) return false;
  return ((given & GIVEN_CRON) == 0 || !x->by_clock || x->shape == y->shape) &&
         ((given & GIVEN_INTERVAL) == 0 || x->by_clock || x->interval_ms == y->interval_ms) &&
         ((given & GIVEN_START) == 0 || x->start_at == y->start_at) && ((given & GIVEN_END) == 0 || x->end_at == y->end_at) &&
         ((given & GIVEN_OVERLAP) == 0 || x->overlap == y->overlap) &&
         ((given & GIVEN_MISSED) == 0 || x->missed == y->missed) &&
         ((given & GIVEN_CATCH_UP) == 0 || x->catch_up_limit == y->catch_up_limit) &&
         ((given & GIVEN_TEMPLATE) == 0 || same_template(a, b));
}

static bool same_subscription(const struct request *a, const struct request *b) {
  const struct subscribed *x = &a->subscribed, *y = &b->subscribed;
  if (a->kind != COMMAND_SUBSCRIPTION_CREATE) return x->object == y->object && x->position == y->position;
  return x->name == y->name && x->types == y->types && x->from == y->from && x->position == y->position &&
         a->queue == b->queue && id_equal(&a->task_id, &b->task_id);
}

bool request_means_the_same(const struct request *a, const struct request *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case COMMAND_SUBMIT:
      return same_submission(a, b);
    case COMMAND_START:
    case COMMAND_RELEASE:
      return same_attempt(a, b);
    case COMMAND_FINISH:
      return same_attempt(a, b) && a->outcome == b->outcome && a->retryable == b->retryable && a->text == b->text;
    case COMMAND_CANCEL:
      return id_equal(&a->task_id, &b->task_id) && a->text == b->text && a->expected_revision == b->expected_revision;
    case COMMAND_REVIEW:
      return id_equal(&a->task_id, &b->task_id) && a->text == b->text && a->expected_revision == b->expected_revision &&
             a->outcome == b->outcome;
    case COMMAND_RETRY:
      return id_equal(&a->task_id, &b->task_id) && a->text == b->text && a->expected_revision == b->expected_revision &&
             a->task_timeout_ms == b->task_timeout_ms && a->available_at == b->available_at &&
             a->start_deadline_at == b->start_deadline_at;
    case COMMAND_QUEUE_CHANGE:
      return same_change(a, b);
    case COMMAND_QUEUE_PAUSE:
    case COMMAND_QUEUE_RESUME:
      return a->queue == b->queue && a->text == b->text;
    case COMMAND_QUEUE_CREATE:
      return same_queue(a, b);
    case COMMAND_SCHEDULE_CREATE:
    case COMMAND_SCHEDULE_CHANGE:
      return a->schedule == b->schedule && same_plan(a, b);
    case COMMAND_SCHEDULE_PAUSE:
    case COMMAND_SCHEDULE_RESUME:
    case COMMAND_SCHEDULE_DELETE:
      return a->schedule == b->schedule && a->text == b->text && a->expected_revision == b->expected_revision;
    case COMMAND_SUBSCRIPTION_CREATE:
    case COMMAND_SUBSCRIPTION_ACK:
    case COMMAND_SUBSCRIPTION_DELETE:
      return same_subscription(a, b);
    case COMMAND_APPLICATION_CHANGE:
      return same_application(a, b);
    case COMMAND_CREDENTIAL_CREATE:
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      return same_credential(a, b);
    default:
      return false;
  }
}

bool request_names_task(const struct request *request) {
  enum command_kind kind = request->kind;
  return kind == COMMAND_GET_TASK || (kind >= COMMAND_START && kind <= COMMAND_RELEASE) ||
         (kind >= COMMAND_CANCEL && kind <= COMMAND_RETRY);
}

bool request_has_identity(const struct request *request) {
  enum command_kind kind = request->kind;
  bool worker = kind == COMMAND_START || kind == COMMAND_FINISH || kind == COMMAND_RELEASE;
  return worker || kind == COMMAND_SUBMIT || (kind >= COMMAND_CANCEL && kind <= COMMAND_SCHEDULE_DELETE);
}

bool request_is_the_same(const struct request *a, const struct request *b) {
  if (a->kind != b->kind || a->key != b->key) return false;
  switch (a->kind) {
    case COMMAND_SUBMIT:
    case COMMAND_QUEUE_CREATE:
    case COMMAND_CREDENTIAL_CREATE:
    case COMMAND_SCHEDULE_CREATE:
    case COMMAND_SUBSCRIPTION_CREATE:
      return true;
    case COMMAND_SUBSCRIPTION_ACK:
    case COMMAND_SUBSCRIPTION_DELETE:
      return a->subscribed.object == b->subscribed.object;
    case COMMAND_SCHEDULE_CHANGE:
    case COMMAND_SCHEDULE_PAUSE:
    case COMMAND_SCHEDULE_RESUME:
    case COMMAND_SCHEDULE_DELETE:
      return a->schedule == b->schedule;
    case COMMAND_APPLICATION_CHANGE:
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      return a->administered.object == b->administered.object;
    case COMMAND_START:
    case COMMAND_FINISH:
    case COMMAND_RELEASE:
      return id_equal(&a->attempt_id, &b->attempt_id) && who_application(a->who) == who_application(b->who);
    case COMMAND_CANCEL:
    case COMMAND_REVIEW:
    case COMMAND_RETRY:
      return id_equal(&a->task_id, &b->task_id);
    default:
      return a->queue == b->queue;
  }
}
