/* Owns reports: the functions that handlers call, and the message that their outcome becomes. */
#include "report.h"

#include <string.h>

#include "base/limits.h"
#include "codec/wire_http.h"
#include "documents.h"

void sdk_report_init(struct orbit_report *report, const struct orbit_assignment *assignment) {
  *report = (struct orbit_report){.outcome = ORBIT_UNKNOWN, .assignment = assignment};
  /* Twice the bound: room for a document and for the words that wrap a late one. */
  buffer_init(&report->document, 2U * document_bytes_max);
}

void sdk_report_clear(struct orbit_report *report) {
  buffer_clear(&report->document);
  sdk_arena_clear(&report->arena);
}

static void report_reset(struct orbit_report *report) {
  const struct orbit_assignment *assignment = report->assignment;
  sdk_report_clear(report);
  sdk_report_init(report, assignment);
}

static enum orbit_outcome report_invalid(struct orbit_report *report, const char *problem) {
  report_reset(report);
  report->code = "INVALID_REPORT";
  report->message = problem;
  return ORBIT_UNKNOWN;
}

/* Sets code, message and details. False, with an INVALID_REPORT in place, when one of them is not well-formed. */
static bool error_set(struct orbit_report *report, const char *code, const char *message, const char *details,
                      size_t details_size) {
  const char *problem = NULL;
  report_reset(report);
  if (!sdk_is_word(code)) {
    problem = "the handler gave an error code that is none";
  } else if (message != NULL && !sdk_is_text(message, 0, error_message_chars_max)) {
    problem = "the handler gave an error message that is too long or not UTF-8";
  } else if (details != NULL && !sdk_document_minify(details, details_size, false, &report->document)) {
    problem = "the handler gave error details that are not JSON, null, or too large";
  }
  if (problem == NULL) {
    report->code = sdk_arena_string(&report->arena, code);
    report->message = message != NULL && message[0] != '\0' ? sdk_arena_string(&report->arena, message) : NULL;
    if (report->arena.failed) problem = "out of memory";
  }
  if (problem != NULL) (void)report_invalid(report, problem);
  return problem == NULL;
}

enum orbit_outcome orbit_report_success(struct orbit_report *report, const char *result, size_t result_size) {
  report_reset(report);
  if (!sdk_document_minify(result, result_size, false, &report->document)) {
    return report_invalid(report, "the handler gave a result that is not JSON, null, or too large");
  }
  return report->outcome = ORBIT_SUCCEEDED;
}

enum orbit_outcome orbit_report_failure(struct orbit_report *report, const char *code, bool retryable, const char *message,
                                        const char *details, size_t details_size) {
  if (!error_set(report, code, message, details, details_size)) return ORBIT_UNKNOWN;
  report->retryable = retryable;
  return report->outcome = ORBIT_FAILED;
}

enum orbit_outcome orbit_report_unknown(struct orbit_report *report, const char *code, const char *message, const char *details,
                                        size_t details_size) {
  (void)error_set(report, code, message, details, details_size);
  return report->outcome = ORBIT_UNKNOWN;
}

enum orbit_outcome orbit_report_cancelled(struct orbit_report *report, const char *code, const char *message) {
  if (!orbit_assignment_cancelled(report->assignment)) {
    return report_invalid(report, "the handler confirmed a cancellation that nobody asked for");
  }
  if (!error_set(report, code, message, NULL, 0)) return ORBIT_UNKNOWN;
  return report->outcome = ORBIT_CANCELLED;
}

static const char *outcome_name(enum orbit_outcome outcome) {
  switch (outcome) {
    case ORBIT_SUCCEEDED:
      return "SUCCEEDED";
    case ORBIT_FAILED:
      return "FAILED";
    case ORBIT_CANCELLED:
      return "CANCELLED";
    case ORBIT_UNKNOWN:
    default:
      return "UNKNOWN";
  }
}

/* A report after the end of the lease: what was said becomes the details, for the people who will look at it. */
static void report_settle_late(struct orbit_report *report) {
  struct buffer details;
  buffer_init(&details, document_bytes_max);
  buffer_append_char(&details, '{');
  wire_text_member(&details, "handler_outcome", bytes_text(outcome_name(report->outcome)));
  if (report->outcome == ORBIT_FAILED) wire_bool_member(&details, "handler_retryable", report->retryable);
  if (report->code != NULL) wire_text_member(&details, "handler_code", bytes_text(report->code));
  size_t wrapped = details.size + sizeof ",\"handler_document\":}";
  if (report->document.size > 0 && wrapped + report->document.size <= document_bytes_max) {
    wire_raw_member(&details, report->outcome == ORBIT_SUCCEEDED ? "handler_result" : "handler_details",
                    buffer_bytes(&report->document));
  }
  buffer_append_char(&details, '}');
  report_reset(report);
  report->code = "LEASE_LOST";
  report->message = "the handler returned after its lease was over";
  if (details.failed) {
    buffer_clear(&details);
  } else {
    report->document = details;
  }
}

void sdk_report_settle(struct orbit_report *report, enum orbit_outcome returned, bool lost) {
  if (returned != report->outcome || (report->outcome == ORBIT_UNKNOWN && report->code == NULL)) {
    (void)report_invalid(report, "the handler returned without a report");
    report->code = "NO_REPORT";
  }
  if (lost) report_settle_late(report);
}

void sdk_report_replace(struct orbit_report *report, const char *code, struct bytes message) {
  report_reset(report);
  report->code = sdk_arena_string(&report->arena, code);
  report->message =
      message.size > 0 && message.size <= error_message_chars_max ? sdk_arena_text(&report->arena, message) : NULL;
}

void sdk_finish_write(struct buffer *out, const struct id *message_id, const struct sdk_attempt_name *attempt,
                      const struct orbit_report *report) {
  buffer_append_text(out, "{\"type\":\"task.finish\"");
  wire_id_member(out, "message_id", message_id);
  wire_id_member(out, "task_id", &attempt->task_id);
  wire_id_member(out, "attempt_id", &attempt->attempt_id);
  wire_decimal_member(out, "epoch", attempt->epoch);
  wire_text_member(out, "outcome", bytes_text(outcome_name(report->outcome)));
  if (report->retryable) wire_bool_member(out, "retryable", true);
  if (report->outcome == ORBIT_SUCCEEDED) {
    wire_raw_member(out, "result", buffer_bytes(&report->document));
  } else {
    buffer_append_text(out, ",\"error\":{");
    wire_text_member(out, "code", bytes_text(report->code != NULL ? report->code : "UNKNOWN"));
    if (report->message != NULL) wire_text_member(out, "message", bytes_text(report->message));
    if (report->document.size > 0) wire_raw_member(out, "details", buffer_bytes(&report->document));
    buffer_append_char(out, '}');
  }
  buffer_append_char(out, '}');
}
