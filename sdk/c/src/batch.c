/* Owns batches: several submissions in one request, and an answer for each. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "documents.h"
#include "request.h"

void orbit_submission_answer_list_free(struct orbit_submission_answer_list *answers) { sdk_result_free(answers); }

/* What a body may grow to before it is found too large: one item more. */
enum { batch_buffer_bytes = http_batch_body_bytes_max + 2 * http_body_bytes_max };

static int item_write(const struct orbit_submission *submission, size_t index, struct buffer *body, struct orbit_error *error) {
  struct orbit_error inner;
  char field[sizeof inner.field + 32];
  int status = sdk_key_judge(submission->operation_key, &inner);
  if (status == ORBIT_OK) status = sdk_submission_write(submission->operation_key, submission->request, body, &inner);
  if (status == ORBIT_OK) return status;
  if (status == ORBIT_NO_MEMORY) return sdk_no_memory(error);
  const char *slash = inner.field[0] == '/' || inner.field[0] == '\0' ? "" : "/";
  (void)snprintf(field, sizeof field, "/items/%zu%s%s", index, slash, inner.field);
  return sdk_fail(error, status, field, "%s", inner.message);
}

static int body_write(const struct orbit_submission *submissions, size_t count, struct buffer *body,
                      struct orbit_error *error) {
  if (submissions == NULL || count == 0 || count > batch_items_max) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "submissions", "a batch is 1–1,000 submissions");
  }
  buffer_append_text(body, "{\"items\":[");
  for (size_t i = 0; i < count; i++) {
    if (i > 0) buffer_append_char(body, ',');
    int status = item_write(&submissions[i], i, body, error);
    if (status != ORBIT_OK) return status;
    if (body->size > http_batch_body_bytes_max) {
      return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "submissions", "the batch is larger than 4 MiB: submit it in parts");
    }
  }
  buffer_append_text(body, "]}");
  return body->failed ? sdk_no_memory(error) : ORBIT_OK;
}

static void refusal_read(struct sdk_view *view, int32_t http_status, struct orbit_error *error) {
  struct sdk_view inner = sdk_view_needed(view, "error");
  const char *message = sdk_view_text(&inner, "message"), *code = sdk_view_text(&inner, "code");
  (void)sdk_fail(error, ORBIT_REFUSED, sdk_view_text(&inner, "field"), "%s", message != NULL ? message : "");
  error->http_status = http_status;
  error->retry_after_ms = sdk_view_u64(&inner, "retry_after_ms");
  sdk_text_copy(error->code, sizeof error->code, bytes_text(code != NULL ? code : ""));
  sdk_view_join(view, &inner);
}

static void accepted_read(struct sdk_view *view, struct orbit_submission_answer *answer) {
  struct orbit_task *task = sdk_arena_alloc(view->arena, sizeof *task);
  struct sdk_view inner = sdk_view_needed(view, "task");
  if (task == NULL) return;
  sdk_task_read(&inner, task);
  sdk_view_join(view, &inner);
  task->deduplicated = sdk_view_bool(view, "deduplicated");
  answer->task = task;
}

static void answer_read(struct sdk_view *view, void *object) {
  struct orbit_submission_answer *answer = object;
  uint32_t http_status = sdk_view_u32(view, "status");
  answer->http_status = (int32_t)(http_status <= INT32_MAX ? http_status : 0);
  if (answer->http_status >= 200 && answer->http_status <= 299) {
    accepted_read(view, answer);
  } else if (answer->http_status >= 400 && answer->http_status <= 599) {
    refusal_read(view, answer->http_status, &answer->error);
  } else {
    view->bad = true;
  }
}

static void answers_read(struct sdk_view *data, void *object) {
  static const struct sdk_kind kind = {sizeof(struct orbit_submission_answer), answer_read, NULL, false};
  struct orbit_submission_answer_list *answers = object;
  void **items;
  sdk_items_read(data, &kind, &items, &answers->count);
  answers->items = (const struct orbit_submission_answer *const *)items;
}

int orbit_submit_tasks(struct orbit_client *client, const struct orbit_submission *submissions, size_t count,
                       struct orbit_submission_answer_list **ret_answers, struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_submission_answer_list), answers_read, NULL, false};
  cleanup(buffer_clear) struct buffer body;
  void *object;
  buffer_init(&body, batch_buffer_bytes);
  int status = body_write(submissions, count, &body, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"POST", "/v1/tasks:batch", NULL, &body};
  status = sdk_call_object(client, &call, &kind, &object, error);
  if (status != ORBIT_OK) return status;
  struct orbit_submission_answer_list *answers = object;
  if (answers->count != count) {
    orbit_submission_answer_list_free(answers);
    return sdk_fail(error, ORBIT_BAD_ANSWER, NULL, "the answer does not have one item for each submission");
  }
  *ret_answers = answers;
  return ORBIT_OK;
}
