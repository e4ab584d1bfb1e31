/* Requests as JSON, and the objects of answers as the structures of orbit.h. Pure. */
#ifndef ORBIT_SDK_DOCUMENTS_H
#define ORBIT_SDK_DOCUMENTS_H

#include "sdk.h"
#include "view.h"

/* Appends the body of POST /v1/tasks. ORBIT_INVALID_ARGUMENT names the field by JSON Pointer; also checked here: that the
 * payload is one JSON value, so that it cannot change the rest of the body. */
int sdk_task_request_write(const struct orbit_task_request *request, struct buffer *out, struct orbit_error *error);
/* The same as an item of a batch, with its key. */
int sdk_submission_write(const char *key, const struct orbit_task_request *request, struct buffer *out,
                         struct orbit_error *error);
/* The same as the template of a schedule: without the queue, and refused with times. */
int sdk_template_write(const struct orbit_task_request *request, struct buffer *out, struct orbit_error *error);
/* Checks that text is one JSON value of at most document_bytes_max bytes without outside white space, and appends it so. False:
 * it is not. */
bool sdk_document_minify(const char *text, size_t size, bool null_allowed, struct buffer *out);

bool sdk_is_time(int64_t time_us); /* 0, or in the years that Orbit takes */
/* "WAITING" … by enum orbit_task_state; NULL for other numbers. Static. */
const char *sdk_task_state_name(int32_t state);

/* Each reads the view's object; texts go to its arena. `bad` tells whether it was such an object. */
void sdk_task_read(struct sdk_view *view, struct orbit_task *task);
void sdk_attempt_read(struct sdk_view *view, struct orbit_attempt *attempt);
void sdk_evidence_read(struct sdk_view *view, struct orbit_evidence *evidence);
void sdk_event_read(struct sdk_view *view, void *event); /* struct orbit_event; as sdk_read (recovery.c) */
void sdk_server_info_read(struct sdk_view *view, struct orbit_server_info *info);

#endif
