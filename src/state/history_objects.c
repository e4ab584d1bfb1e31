/* Owns the history of the objects that are no tasks: as they were configured at a position. */
#include "core/apply.h"
#include "state/history.h"

/* Decodes the events of the stream up to seq, oldest first, and gives each to apply. */
static enum status fold_object(struct history *history, struct record_source source, uint64_t seq,
                               void (*apply)(void *object, const struct event *event), void *object) {
  const uint64_t *seqs;
  size_t count = 0;
  struct event event;
  enum status status = history_chain(history, source, seq, &seqs, &count);
  for (size_t i = 0; i < count && status == STATUS_OK; i++) {
    status = history_event(history, source, seqs[i], &event);
    if (status == STATUS_OK) apply(object, &event);
  }
  return status;
}

static void queue_event(void *object, const struct event *event) { apply_queue(object, event); }
static void application_event(void *object, const struct event *event) { apply_application(object, event); }
static void subscription_event(void *object, const struct event *event) { apply_subscription(object, event); }
static void credential_event(void *object, const struct event *event) { apply_credential(object, event); }

enum status history_queue_at(struct history *history, struct record_source source, uint64_t seq, struct queue *ret_queue) {
  struct queue queue = {.revision = 0};
  enum status status = fold_object(history, source, seq, queue_event, &queue);
  if (status == STATUS_OK) *ret_queue = queue;
  return status;
}

enum status history_application_at(struct history *history, struct record_source source, uint64_t seq,
                                   struct application *ret_application) {
  struct application application = {.revision = 0};
  enum status status = fold_object(history, source, seq, application_event, &application);
  if (status == STATUS_OK) *ret_application = application;
  return status;
}

enum status history_credential_at(struct history *history, struct record_source source, uint64_t seq,
                                  struct credential *ret_credential) {
  struct credential credential = {.revision = 0};
  enum status status = fold_object(history, source, seq, credential_event, &credential);
  if (status == STATUS_OK) *ret_credential = credential;
  return status;
}

enum status history_subscription_at(struct history *history, struct record_source source, uint64_t seq,
                                    struct subscription *ret_subscription) {
  struct subscription subscription = {.revision = 0};
  enum status status = fold_object(history, source, seq, subscription_event, &subscription);
  if (status == STATUS_OK) *ret_subscription = subscription;
  return status;
}
