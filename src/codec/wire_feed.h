/* The feed: events as its readers get them, subscriptions as JSON and from bodies (schema/http.md "Events", "Subscriptions").
 * Pure. */
#ifndef ORBIT_CODEC_WIRE_FEED_H
#define ORBIT_CODEC_WIRE_FEED_H

#include "base/status.h"
#include "codec/json.h"
#include "core/command.h"
#include "core/event.h"
#include "core/model.h"

/* {"position","type","time","task_id"?,"queue_id","revision"?,"data":{…}}: the event without payload (its size instead), token
 * hashes and identities. report: the attempt.result that a decision was made from, whose result and error are told with it;
 * NULL: none. It is written from the log alone, so it is the same whenever it is read. */
void wire_feed_event_write(struct buffer *out, const struct event *event, const struct event *report,
                           const struct id *queue_id);

/* Read the bodies of POST /v1/subscriptions, …:ack and …:delete into the command and set kind and operation.digest. As those of
 * wire_admin.h. */
enum status wire_subscription_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault);
enum status wire_subscription_ack_read(struct json *json, struct bytes body, const struct id *subscription_id,
                                       struct command *command, struct fault *fault);
enum status wire_subscription_delete_read(struct json *json, struct bytes body, const struct id *subscription_id,
                                          struct command *command, struct fault *fault);

/* {"id","namespace_id","name","revision","types"?,"queue_id"?,"task_id"?,"position"} and, when live, "lag": how many events of
 * the log stand behind its position. Answers to writes are not live. */
void wire_subscription_write(struct buffer *out, const struct subscription *subscription, struct bytes name, bool live,
                             uint64_t log_end);

#endif
