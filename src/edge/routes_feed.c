/* Owns the routes of the feed and of subscriptions. */
#include "codec/wire_admin.h"
#include "codec/wire_feed.h"
#include "codec/wire_http.h"
#include "edge/routes.h"

/* ---- What a reader asks for ---- */

static enum status read_id(const struct request *request, const char *name, struct id *ret_id, struct fault *fault) {
  struct bytes text = target_parameter(&request->target, name);
  if (text.data == NULL || id_parse(text, ret_id)) return STATUS_OK;
  return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "%s must be an id: 32 lower-case hexadecimal digits, not all zero",
                   name);
}

static enum status read_types(const struct request *request, struct feed_types *ret_types, struct fault *fault) {
  struct bytes text = target_parameter(&request->target, "types");
  if (text.data == NULL || feed_types_parse(text, ret_types)) return STATUS_OK;
  return fault_set(
      fault, STATUS_INVALID_ARGUMENT, "types",
      "types must be names of events that the feed shows, each once, with commas between: task.succeeded,task.failed");
}

/* Where a client that lost its stream goes on; it wins over `after`, which such a client repeats as well. */
static enum status read_last_event_id(const struct request *request, struct open_feed_command *open, struct fault *fault) {
  static const char name[] = "Last-Event-ID";
  const struct head *head = &request->head;
  if (head->last_event_ids == 0) return STATUS_OK;
  if (head->last_event_ids > 1) return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "the header is given twice");
  open->after_header = true;
  return number_parse(head->last_event_id, &open->after)
             ? STATUS_OK
             : fault_set(fault, STATUS_INVALID_ARGUMENT, name, "must be a position, as the stream's id: decimal digits");
}

static enum status begin_feed(struct request *request, struct command *command, struct fault *fault) {
  struct open_feed_command *open = &command->as.open_feed;
  uint64_t wait_ms = 0;
  command->kind = COMMAND_OPEN_FEED;
  enum status status = page_limit_read(request, &request->page_limit, fault);
  if (status == STATUS_OK) status = target_number(&request->target, "wait_ms", 0, feed_wait_ms_max, 0, &wait_ms, fault);
  if (status == STATUS_OK) status = target_number(&request->target, "after", 0, UINT64_MAX, 0, &open->after, fault);
  if (status == STATUS_OK) status = read_last_event_id(request, open, fault);
  request->wait_ms = (uint32_t)wait_ms;
  return status;
}

enum status feed_begin_events(struct request *request, struct command *command, struct fault *fault) {
  struct feed_filter *filter = &command->as.open_feed.filter;
  enum status status = begin_feed(request, command, fault);
  if (status == STATUS_OK) status = read_types(request, &filter->types, fault);
  if (status == STATUS_OK) status = read_id(request, "queue_id", &filter->queue_id, fault);
  if (status == STATUS_OK) status = read_id(request, "task_id", &filter->task_id, fault);
  return status;
}

enum status feed_begin_subscription(struct request *request, struct command *command, struct fault *fault) {
  command->as.open_feed.subscription_id = request->ids[0];
  return begin_feed(request, command, fault);
}

/* ---- A page of events: request->feed is there, and stands before the first that is shown, or where nothing is ---- */

enum status feed_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  (void)answer;
  struct feed *feed = request->pool->feed;
  struct feed_reader *reader = &request->feed->reader;
  uint32_t looks = feed_scan_events_max;
  enum status status = STATUS_OK;
  buffer_append_text(&request->out, "{\"items\":[");
  for (uint32_t rows = 0; rows < request->page_limit && !request_page_is_full(request); rows++) {
    struct feed_event event;
    enum feed_found found;
    status = feed_next(feed, reader, &looks, &found, &event);
    if (status != STATUS_OK || found != FEED_FOUND) break;
    if (rows > 0) buffer_append_char(&request->out, ',');
    status = feed_write(feed, &request->out, &event);
    if (status != STATUS_OK) break;
  }
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log cannot be read for the feed");
  buffer_append_char(&request->out, ']');
  wire_decimal_member(&request->out, "next_position", reader->after);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

/* ---- Subscriptions ---- */

enum status subscriptions_create_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_subscription_create_read(&job->json, buffer_bytes(&job->body), command, fault);
}

enum status subscriptions_ack_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_subscription_ack_read(&job->json, buffer_bytes(&job->body), &request->ids[0], command, fault);
}

enum status subscriptions_delete_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_subscription_delete_read(&job->json, buffer_bytes(&job->body), &request->ids[0], command, fault);
}

enum status subscriptions_get_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)fault;
  command->kind = COMMAND_GET_SUBSCRIPTION;
  command->as.object_id = request->ids[0];
  return STATUS_OK;
}

static enum status finish_subscription(struct request *request, const struct answer *answer, bool live, struct fault *fault) {
  struct object_texts texts;
  enum status status = object_texts_read(request, answer->as.subscription.config_seq, &texts, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"subscription\":");
  wire_subscription_write(&request->out, &answer->as.subscription, texts.name, live, answer->log_end);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

enum status subscriptions_write_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_subscription(request, answer, false, fault);
}

enum status subscriptions_get_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_subscription(request, answer, true, fault);
}
