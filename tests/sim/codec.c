/* Owns the way of requests through JSON: now and then one is written out as a body or a worker's message, members in any order,
 * and what the product reads from it must be the command that was given, down to its identity and digest. */
#include <string.h>

#include "codec/wire_http.h"
#include "codec/wire_worker.h"
#include "sim/sim.h"

/* One request in so many. */
enum { written_every = 16 };

static struct id document_digest(struct codec *codec, struct bytes text) {
  static const struct id none;
  struct fault fault;
  if (json_parse(&codec->json, text, &fault) != STATUS_OK) return none;
  return json_digest(&codec->json, 0, &codec->scratch);
}

void codec_open(struct codec *codec) {
  json_init(&codec->json);
  buffer_init(&codec->body, 65536);
  buffer_init(&codec->texts, 65536);
  buffer_init(&codec->scratch, 65536);
  for (unsigned i = 0; i < texts_max; i++) {
    codec->payloads[i] = document_digest(codec, text_payload(i));
    codec->results[i] = document_digest(codec, text_result(i));
    codec->details[i] = document_digest(codec, text_details(i));
  }
}

void codec_close(struct codec *codec) {
  json_clear(&codec->json);
  buffer_clear(&codec->body);
  buffer_clear(&codec->texts);
  buffer_clear(&codec->scratch);
}

/* ---- writing, member by member, from a place that the key chooses ---- */

static void write_submit_member(const struct request *request, const struct command *command, unsigned which,
                                struct buffer *out) {
  const struct submit_command *submit = &command->as.submit;
  switch (which) {
    case 0:
      wire_id_member(out, "queue_id", &submit->queue_id);
      break;
    case 1:
      wire_text_member(out, "handler", submit->handler);
      break;
    case 2:
      wire_text_member(out, "handler_version", submit->handler_version);
      break;
    case 3:
      wire_text_member(out, "payload_version", submit->payload_version);
      break;
    case 4:
      wire_raw_member(out, "payload", submit->payload);
      break;
    case 5:
      wire_number_member(out, "task_timeout_ms", request->task_timeout_ms);
      break;
    case 6:
      wire_time_member(out, "available_at", request->available_at);
      break;
    case 7:
      wire_time_member(out, "start_deadline_at", request->start_deadline_at);
      break;
    case 8: /* the default may be told or not */
      if (request->idempotent) wire_text_member(out, "recovery_safety", bytes_text("IDEMPOTENT"));
      else if (request->key % 3 == 0) wire_text_member(out, "recovery_safety", bytes_text("RECONCILE_ONLY"));
      break;
    case 9:
      wire_raw_member(out, "retry", bytes_text("{"));
      if (request->max_attempts != 1 || request->key % 3 == 0) wire_number_member(out, "max_attempts", request->max_attempts);
      wire_number_member(out, "initial_delay_ms", request->initial_delay_ms);
      wire_number_member(out, "max_delay_ms", request->max_delay_ms);
      wire_number_member(out, "attempt_timeout_ms", request->attempt_timeout_ms);
      buffer_append_text(out, "}");
      break;
    case 10:
      wire_text_member(out, "concurrency_key", submit->concurrency_key);
      break;
    case 11:
      wire_text_member(out, "business_key", submit->business_key);
      break;
    default:
      if (request->priority != 0 || request->key % 3 == 0) wire_number_member(out, "priority", request->priority);
      break;
  }
}

static void write_worker_member(const struct request *request, const struct command *command, unsigned which,
                                struct buffer *out) {
  struct id message_id = message_id_of(request->key);
  bool finish = request->kind == COMMAND_FINISH, success = request->outcome == OUTCOME_SUCCEEDED;
  switch (which) {
    case 0:
      wire_text_member(out, "type", bytes_text(command_kind_text(request->kind)));
      break;
    case 1:
      wire_id_member(out, "message_id", &message_id);
      break;
    case 2:
      wire_id_member(out, "task_id", &request->task_id);
      break;
    case 3:
      wire_id_member(out, "attempt_id", &request->attempt_id);
      break;
    case 4:
      wire_decimal_member(out, "epoch", request->epoch);
      break;
    case 5:
      if (finish) wire_text_member(out, "outcome", bytes_text(outcome_text(request->outcome)));
      break;
    case 6:
      if (finish && (request->retryable || request->key % 3 == 0)) wire_bool_member(out, "retryable", request->retryable);
      break;
    default:
      if (!finish) break;
      wire_raw_member(out, success ? "result" : "error", success ? command->as.finish.report.result : bytes_text("{"));
      if (success) break;
      wire_raw_member(out, "details", command->as.finish.report.error_details);
      wire_text_member(out, "code", bytes_text("BROKEN"));
      buffer_append_text(out, "}");
      break;
  }
}

/* ---- reading it back ---- */

static enum status read_submit(struct codec *codec, struct command *read, struct fault *fault) {
  return wire_submit_read(&codec->json, buffer_bytes(&codec->body), &codec->texts, read, fault);
}

static enum status read_message(struct sim *sim, const struct command *command, struct command *read, struct fault *fault) {
  struct codec *codec = &sim->codec;
  struct worker_frame frame;
  struct id message_id;
  enum status status = worker_frame_read(&codec->json, buffer_bytes(&codec->body), &frame, fault);
  if (status != STATUS_OK) return status;
  return worker_message_read(&codec->json, frame.first, journal_secret(sim->disk), &command->who, &codec->texts, read,
                             &message_id, fault);
}

static bool is_in_the_calendar(int64_t time_us) { return time_us == 0 || time_us > INT64_C(1000000000) * 1000000; }

/* What the edges would refuse before the engine sees it is not written out. */
static bool can_be_written(const struct request *request) {
  if (request->kind == COMMAND_SUBMIT)
    return request->task_timeout_ms != 0 && request->attempt_timeout_ms <= request->task_timeout_ms &&
           is_in_the_calendar(request->available_at) && is_in_the_calendar(request->start_deadline_at);
  bool worker = request->kind == COMMAND_START || request->kind == COMMAND_FINISH || request->kind == COMMAND_RELEASE;
  return worker && request->epoch != 0 && request->epoch < INT64_MAX;
}

void sim_check_codec(struct sim *sim, const struct request *request, const struct command *command) {
  struct codec *codec = &sim->codec;
  struct command read = {.kind = COMMAND_GET_TASK};
  struct fault fault = {0};
  bool submit = request->kind == COMMAND_SUBMIT;
  unsigned members = submit ? 13 : 8;
  if (sim_roll(sim, written_every) != 0 || !can_be_written(request)) return;
  buffer_reset(&codec->body);
  buffer_reset(&codec->texts);
  buffer_append_char(&codec->body, '{');
  for (unsigned i = 0, from = (unsigned)sim_roll(sim, members); i < members; i++)
    (submit ? write_submit_member : write_worker_member)(request, command, (from + i) % members, &codec->body);
  buffer_append_char(&codec->body, '}');
  enum status status = submit ? read_submit(codec, &read, &fault) : read_message(sim, command, &read, &fault);
  if (status != STATUS_OK) {
    model_complain(&sim->model, "a body should be read, is refused: %s: %s", fault.field, fault.message);
    return;
  }
  bool same = read.kind == command->kind && id_equal(&read.operation.digest, &command->operation.digest) &&
              (submit || id_equal(&read.operation.identity, &command->operation.identity));
  if (!same)
    model_complain(&sim->model, "%s written out and read again means something else: %.*s", command_kind_text(request->kind),
                   codec->body.size < 300 ? (int)codec->body.size : 300, (const char *)codec->body.data);
}
