/* Digests and secrets: XXH3-128 of meanings, keyed BLAKE2b of identities, token hashes (schema/semantics.md "Receipts",
 * schema/log.md "Digests"). */
#ifndef ORBIT_CODEC_DIGEST_H
#define ORBIT_CODEC_DIGEST_H

#include "base/bytes.h"
#include "base/id.h"
#include "base/limits.h"
#include "codec/json.h"
#include "core/command.h"

/* The genesis secret: makes identities of different installations and tenants unrelated. */
struct secret {
  uint8_t bytes[genesis_secret_bytes];
};

/* Keyed BLAKE2b-128 over the length-prefixed parts. operation is "task.submit", "task.start", …; target is the object's id, or
 * zero where the key alone names it (task.submit). */
struct id identity_make(const struct secret *secret, const struct id *namespace_id, const char *operation,
                        const struct id *target, struct bytes key);

/* XXH3-128 over the canonical form of a JSON value, as an id's 16 bytes (big-endian canonical). scratch is overwritten; its
 * limit must not be less than the text's size: the canonical form is never longer than the text. */
struct id json_digest(struct json *json, uint32_t token, struct buffer *scratch);

/* XXH3-128 of the meaning of a request: every field with defaults filled in, length-prefixed, in the order of the structure;
 * documents by their canonical form. JSON texts in the commands are re-parsed with json only if needed: callers pass the
 * documents' digests. */
struct id submit_digest(const struct submit_command *command, const struct id *payload_digest);
struct id finish_digest(const struct attempt_ref *ref, const struct report *report, const struct id *details_digest,
                        const struct id *result_digest);     /* message_id is no part of it; NULL digests: absent */
struct id attempt_ref_digest(const struct attempt_ref *ref); /* start, release: task, attempt and epoch */
struct id cancel_digest(const struct cancel_command *command);
struct id review_digest(const struct review_command *command);
struct id retry_digest(const struct retry_command *command);
/* Administration: kind says what is done to the object. Fields of a change that were not given are no part of it; a new token
 * is none either. */
struct id namespace_digest(const struct namespace_command *command);
struct id queue_digest(enum command_kind kind, const struct queue_command *command);
struct id application_digest(enum command_kind kind, const struct application_command *command);
struct id schedule_digest(enum command_kind kind, const struct schedule_command *command);
struct id credential_digest(enum command_kind kind, const struct credential_command *command);
struct id subscription_digest(enum command_kind kind, const struct subscription_command *command);
/* The filters of a listing of tasks, for the binding of its cursors; not where it goes on nor how many rows. */
struct id list_tasks_digest(const struct list_tasks_command *command);

/* BLAKE2b-256 of a token's text; the token is wiped by nobody here. */
void token_hash(struct bytes token, uint8_t out[token_hash_bytes]);
/* A new token: "orbit_" and 64 hexadecimal digits of 256 bits from the kernel, NUL-terminated. The one function of this room
 * that is not pure. */
enum { token_chars = 6 + 64 };
void token_make(char out[token_chars + 1]);

#endif
