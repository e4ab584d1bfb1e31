/* What the files of the model share. */
#ifndef ORBIT_TESTS_SIM_MODEL_INTERNAL_H
#define ORBIT_TESTS_SIM_MODEL_INTERNAL_H

#include "sim/model.h"

/* ---- model_read.c: events foreseen against events found ---- */

/* True when the next event that was not read yet is of this type. */
bool model_next_is(const struct model *model, enum event_type type);
/* Begins an operation of whoever: its events have one operation id, and the first one this identity (NULL: none). */
void model_operation_begin(struct model *model, const struct id *actor, const struct operation *operation);
/* The next event must be of this type and stream and lead to this revision. Returns it for what the product may choose; model->
 * want.event is to be filled, then model_met. Where another was found it complains, and the returned event is empty. */
const struct event *model_foresee(struct model *model, enum event_type type, const struct id *stream, uint64_t revision,
                                  uint64_t prev);
/* Compares all fields. */
void model_met(struct model *model);
/* A text that lives as long as the foreseen event. */
struct bytes model_text(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An event of the task. */
const struct event *model_foresee_task(struct model *model, enum event_type type, struct model_task *task, uint64_t revision);

/* ---- model.c ---- */

struct model_task *model_task_add(struct model *model, const struct id *id);
void model_touch(struct model *model, const struct model_task *task);
/* The task's state is another from here on: counts follow. Its revision too. */
void model_move(struct model *model, struct model_task *task, enum task_state state);
bool model_receipt_is_gone(struct model *model, const struct model_receipt *receipt);
struct model_receipt *model_receipt_find(struct model *model, const struct request *request); /* NULL: none */
struct model_receipt *model_receipt_add(struct model *model, const struct request *request);
void model_audit_add(struct model *model, uint64_t seq, const struct id *target_id);
struct model_session *model_holder(struct model *model, const struct model_task *task); /* connected; NULL: none */
void model_tell(struct model *model, enum told told, uint64_t session, const struct model_task *task,
                const struct id *attempt_id, enum ended_by ended_by);
void model_tell_drained(struct model *model, struct model_session *session);

/* ---- model_rules.c ---- */

/* What happened to a task. */
enum happening {
  HAPPENED_SUCCESS,
  HAPPENED_FAILURE,
  HAPPENED_RETRYABLE_FAILURE,
  HAPPENED_UNKNOWN,
  HAPPENED_CANCELLED,     /* the worker confirms */
  HAPPENED_UNSTARTED_END, /* the lease was over before the start */
  HAPPENED_RELEASE,
  HAPPENED_WAITED_TOO_LONG,
  HAPPENED_CANCEL /* of a task that was not started */
};
int64_t model_after_ms(int64_t from_us, uint64_t ms);
int64_t model_earlier(int64_t a, int64_t b);
/* When the lease is over. */
int64_t model_lease_end(const struct model_task *task);
bool model_lease_is_good(const struct model *model, const struct model_task *task);
/* Reads the decision event that follows from it, and carries it out. Returns the decision. */
enum decision model_conclude(struct model *model, struct model_task *task, enum happening happening);
/* The attempt has authority no more. */
void model_attempt_over(struct model *model, struct model_task *task);
/* attempt.ended */
void model_read_ended(struct model *model, struct model_task *task, enum attempt_state state, enum ended_by ended_by);
/* STATE of a new task's times; OK fills them. */
enum status model_judge_times(const struct model *model, const struct request *request, int64_t *ret_available_at,
                              int64_t *ret_deadline_at);
enum status model_judge_room(const struct model *model, unsigned queue, unsigned application);

/* Microseconds between two claims at the queue's rate, rounded up; the queue has a rate. */
int64_t model_rate_interval(const struct model_queue *queue);

/* ---- model_admin.c: what writes to objects of administration have in common ---- */

/* False: it was answered before; what is expected says so. */
bool model_object_take_up(struct model *model, const struct request *request, struct expected *expected);
/* It was done now, and the object stands so. */
void model_object_done(struct model *model, const struct request *request, const struct model_object *object,
                       struct expected *expected);
/* Reads the audit record that the object's change to this revision ends with. Returns its seq. */
uint64_t model_object_audit(struct model *model, const char *action, const struct id *id, uint64_t revision, uint64_t prev,
                            struct bytes reason);
/* The id of the object that the next event makes, when it is one of this type. */
const struct id *model_new_id(struct model *model, enum event_type type);

/* ---- one kind of request each ---- */

void model_submit(struct model *model, const struct request *request, struct expected *expected);
void model_attempt_request(struct model *model, const struct request *request, struct expected *expected);
void model_cancel(struct model *model, const struct request *request, struct expected *expected);
void model_review(struct model *model, const struct request *request, struct expected *expected);
void model_retry(struct model *model, const struct request *request, struct expected *expected);
void model_queue_request(struct model *model, const struct request *request, struct expected *expected);
void model_list(struct model *model, const struct request *request, struct expected *expected);
void model_application_request(struct model *model, const struct request *request, struct expected *expected);
void model_credential_request(struct model *model, const struct request *request, struct expected *expected);
void model_schedule_request(struct model *model, const struct request *request, struct expected *expected);
void model_schedule_read(struct model *model, const struct request *request, struct expected *expected);
void model_subscription_request(struct model *model, const struct request *request, struct expected *expected);
void model_subscription_read(struct model *model, const struct request *request, struct expected *expected);
void model_open_feed(struct model *model, const struct request *request, struct expected *expected);
void model_hello(struct model *model, const struct request *request, struct expected *expected);
void model_session_request(struct model *model, const struct request *request, struct expected *expected);
/* Reads task.accepted of a new task and adds it. owner: whose quota; retry_of NULL: none. */
struct model_task *model_accept(struct model *model, const struct request *policy, unsigned application,
                                const struct model_task *retry_of, const struct id *audit_id, int64_t available_at,
                                int64_t start_deadline_at, int64_t deadline_at);

#endif
