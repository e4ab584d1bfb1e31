/* Owns digests: what of a request is hashed, in which order and form. */
#include "codec/digest.h"

#include <endian.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* The state of a streamed XXH3 has no stable layout between versions of the shared library: the header's own code is used. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/guard.h"

static_assert(sizeof(XXH128_canonical_t) == digest_bytes && sizeof(struct id) == digest_bytes, "digests are ids");

/* ---- Identities and secrets: BLAKE2b ---- */

static void add_part(crypto_generichash_state *state, const void *data, size_t size) {
  uint64_t length = htole64(size);
  must(crypto_generichash_update(state, (const uint8_t *)&length, sizeof length) == 0);
  if (size > 0) must(crypto_generichash_update(state, data, size) == 0);
}

struct id identity_make(const struct secret *secret, const struct id *namespace_id, const char *operation,
                        const struct id *target, struct bytes key) {
  struct id identity;
  crypto_generichash_state state;
  must(crypto_generichash_init(&state, secret->bytes, sizeof secret->bytes, sizeof identity.bytes) == 0);
  add_part(&state, namespace_id->bytes, sizeof namespace_id->bytes);
  add_part(&state, operation, strlen(operation));
  add_part(&state, target->bytes, sizeof target->bytes);
  add_part(&state, key.data, key.size);
  must(crypto_generichash_final(&state, identity.bytes, sizeof identity.bytes) == 0);
  return identity;
}

void token_hash(struct bytes token, uint8_t out[token_hash_bytes]) {
  must(crypto_generichash(out, token_hash_bytes, token.data, token.size, NULL, 0) == 0);
}

void token_make(char out[token_chars + 1]) {
  static const char prefix[] = "orbit_";
  uint8_t random[token_bytes];
  static_assert(sizeof prefix - 1 + 2 * sizeof random == token_chars, "a token shows all its bits");
  randombytes_buf(random, sizeof random);
  memcpy(out, prefix, sizeof prefix - 1);
  (void)sodium_bin2hex(out + sizeof prefix - 1, 2 * sizeof random + 1, random, sizeof random);
  sodium_memzero(random, sizeof random);
}

/* ---- Meanings: XXH3-128 ---- */

static struct id id_of_hash(XXH128_hash_t hash) {
  struct id id;
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  memcpy(id.bytes, canonical.digest, sizeof id.bytes);
  return id;
}

struct id json_digest(struct json *json, uint32_t token, struct buffer *scratch) {
  buffer_reset(scratch);
  json_canonical(json, token, scratch);
  must(!scratch->failed);
  return id_of_hash(XXH3_128bits(scratch->data, scratch->size));
}

/* Each field is a mark, present or absent, and for a present one its length and bytes: two sequences of fields are never the
 * same bytes unless they are the same sequence. */
enum { mark_absent = 0, mark_present = 1, field_head_bytes = 1 + sizeof(uint64_t) };

/* A meaning on its way: fields are gathered, because most requests mean few bytes and hashing those at once costs a fraction of
 * hashing each. */
struct meaning {
  XXH3_state_t state; /* what did not fit; unused while `streamed` is false */
  bool streamed;
  size_t size; /* gathered */
  uint8_t bytes[digest_gathered_bytes];
};

static void hash_gathered(struct meaning *meaning) {
  if (!meaning->streamed) must(XXH3_128bits_reset(&meaning->state) == XXH_OK);
  meaning->streamed = true;
  if (meaning->size > 0) must(XXH3_128bits_update(&meaning->state, meaning->bytes, meaning->size) == XXH_OK);
  meaning->size = 0;
}

static void add_bytes(struct meaning *meaning, const void *data, size_t size) {
  uint64_t length = htole64(size);
  if (sizeof meaning->bytes - meaning->size < field_head_bytes) hash_gathered(meaning);
  meaning->bytes[meaning->size] = mark_present;
  memcpy(meaning->bytes + meaning->size + 1, &length, sizeof length);
  meaning->size += field_head_bytes;
  if (size > sizeof meaning->bytes - meaning->size) {
    hash_gathered(meaning);
    if (size > sizeof meaning->bytes) {
      must(XXH3_128bits_update(&meaning->state, data, size) == XXH_OK);
      return;
    }
  }
  if (size == 0) return;
  memcpy(meaning->bytes + meaning->size, data, size);
  meaning->size += size;
}

static void add_absent(struct meaning *meaning) {
  if (meaning->size == sizeof meaning->bytes) hash_gathered(meaning);
  meaning->bytes[meaning->size++] = mark_absent;
}

static void add_text(struct meaning *meaning, struct bytes text) {
  if (text.data == NULL) add_absent(meaning);
  else add_bytes(meaning, text.data, text.size);
}

static void add_id(struct meaning *meaning, const struct id *id) {
  if (id == NULL) add_absent(meaning);
  else add_bytes(meaning, id->bytes, sizeof id->bytes);
}

static void add_number(struct meaning *meaning, uint64_t value) {
  uint64_t number = htole64(value);
  add_bytes(meaning, &number, sizeof number);
}

/* Times and revisions of which 0 says that they were not given. */
static void add_optional(struct meaning *meaning, uint64_t value) {
  if (value == 0) add_absent(meaning);
  else add_number(meaning, value);
}

/* The kind comes first, so that requests of different kinds never mean the same. */
static void begin(struct meaning *meaning, const char *kind) {
  meaning->streamed = false;
  meaning->size = 0;
  add_bytes(meaning, kind, strlen(kind));
}

static struct id end(struct meaning *meaning) {
  if (!meaning->streamed) return id_of_hash(XXH3_128bits(meaning->bytes, meaning->size));
  hash_gathered(meaning);
  return id_of_hash(XXH3_128bits_digest(&meaning->state));
}

struct id submit_digest(const struct submit_command *command, const struct id *payload_digest) {
  struct meaning meaning;
  begin(&meaning, "task.submit");
  add_id(&meaning, &command->queue_id);
  add_text(&meaning, command->handler);
  add_text(&meaning, command->handler_version);
  add_text(&meaning, command->payload_version);
  add_id(&meaning, payload_digest);
  add_text(&meaning, command->business_key);
  add_text(&meaning, command->concurrency_key);
  add_number(&meaning, command->task_timeout_ms);
  add_optional(&meaning, (uint64_t)command->available_at);
  add_optional(&meaning, (uint64_t)command->start_deadline_at);
  add_number(&meaning, (uint64_t)command->recovery_safety);
  add_number(&meaning, command->max_attempts);
  add_number(&meaning, command->initial_delay_ms);
  add_number(&meaning, command->max_delay_ms);
  add_number(&meaning, command->attempt_timeout_ms);
  add_number(&meaning, command->priority);
  return end(&meaning);
}

static void add_ref(struct meaning *meaning, const struct attempt_ref *ref) {
  add_id(meaning, &ref->task_id);
  add_id(meaning, &ref->attempt_id);
  add_number(meaning, ref->epoch);
}

struct id finish_digest(const struct attempt_ref *ref, const struct report *report, const struct id *details_digest,
                        const struct id *result_digest) {
  struct meaning meaning;
  begin(&meaning, "task.finish");
  add_ref(&meaning, ref);
  add_number(&meaning, (uint64_t)report->outcome);
  add_number(&meaning, report->retryable);
  add_text(&meaning, report->error_code);
  add_text(&meaning, report->error_message);
  add_id(&meaning, details_digest);
  add_id(&meaning, result_digest);
  return end(&meaning);
}

struct id attempt_ref_digest(const struct attempt_ref *ref) {
  struct meaning meaning;
  begin(&meaning, "attempt");
  add_ref(&meaning, ref);
  return end(&meaning);
}

struct id cancel_digest(const struct cancel_command *command) {
  struct meaning meaning;
  begin(&meaning, "task.cancel");
  add_id(&meaning, &command->task_id);
  add_text(&meaning, command->reason);
  add_optional(&meaning, command->expected_revision);
  return end(&meaning);
}

struct id review_digest(const struct review_command *command) {
  struct meaning meaning;
  begin(&meaning, "task.review");
  add_id(&meaning, &command->task_id);
  add_optional(&meaning, command->expected_revision);
  add_text(&meaning, command->reason);
  add_text(&meaning, command->evidence_ref);
  add_number(&meaning, (uint64_t)command->outcome);
  add_id(&meaning, &command->result_digest);
  return end(&meaning);
}

struct id retry_digest(const struct retry_command *command) {
  struct meaning meaning;
  begin(&meaning, "task.retry");
  add_id(&meaning, &command->task_id);
  add_optional(&meaning, command->expected_revision);
  add_text(&meaning, command->reason);
  add_text(&meaning, command->evidence_ref);
  add_number(&meaning, command->task_timeout_ms);
  add_optional(&meaning, (uint64_t)command->available_at);
  add_optional(&meaning, (uint64_t)command->start_deadline_at);
  return end(&meaning);
}

/* ---- Administration ---- */

struct id namespace_digest(const struct namespace_command *command) {
  struct meaning meaning;
  begin(&meaning, command_kind_text(COMMAND_NAMESPACE_CREATE));
  add_text(&meaning, command->name);
  return end(&meaning);
}

/* A field of a change: absent unless it was given, and then 0 means that the limit is taken away. */
static void add_given(struct meaning *meaning, bool given, uint64_t value) {
  if (given) add_number(meaning, value);
  else add_absent(meaning);
}

struct id queue_digest(enum command_kind kind, const struct queue_command *command) {
  struct meaning meaning;
  unsigned given = kind == COMMAND_QUEUE_CREATE ? ~0U : command->given;
  begin(&meaning, command_kind_text(kind));
  add_id(&meaning, &command->id);
  add_optional(&meaning, command->expected_revision);
  add_text(&meaning, command->name);
  add_given(&meaning, given & GIVEN_MAX_UNFINISHED, command->max_unfinished);
  add_given(&meaning, given & GIVEN_MAX_RUNNING, command->max_running);
  add_given(&meaning, given & GIVEN_KEY_CONCURRENCY, command->key_concurrency);
  add_given(&meaning, given & GIVEN_RATE, command->rate_tasks);
  add_given(&meaning, given & GIVEN_RATE, command->rate_per_ms);
  add_given(&meaning, given & GIVEN_RATE, command->rate_burst);
  add_given(&meaning, given & GIVEN_LEASE_MS, command->lease_ms);
  add_text(&meaning, command->reason);
  return end(&meaning);
}

struct id application_digest(enum command_kind kind, const struct application_command *command) {
  struct meaning meaning;
  unsigned given = kind == COMMAND_APPLICATION_CREATE ? ~0U : command->given;
  begin(&meaning, command_kind_text(kind));
  add_id(&meaning, &command->id);
  add_optional(&meaning, command->expected_revision);
  add_text(&meaning, command->name);
  add_given(&meaning, given & GIVEN_MAX_UNFINISHED, command->max_unfinished);
  add_given(&meaning, given & GIVEN_DISABLED, command->disabled);
  return end(&meaning);
}

static void add_given_text(struct meaning *meaning, bool given, struct bytes text) {
  if (given) add_text(meaning, text);
  else add_absent(meaning);
}

struct id schedule_digest(enum command_kind kind, const struct schedule_command *command) {
  struct meaning meaning;
  unsigned given = kind == COMMAND_SCHEDULE_CREATE ? ~0U : command->given;
  begin(&meaning, command_kind_text(kind));
  add_id(&meaning, &command->id);
  add_optional(&meaning, command->expected_revision);
  add_text(&meaning, command->name);
  add_id(&meaning, &command->queue_id);
  add_number(&meaning, (uint64_t)command->kind);
  add_given_text(&meaning, given & GIVEN_CRON, command->cron);
  add_given_text(&meaning, given & GIVEN_TIMEZONE, command->timezone);
  add_given(&meaning, given & GIVEN_INTERVAL, command->interval_ms);
  add_given(&meaning, given & GIVEN_START, (uint64_t)command->start_at);
  add_given(&meaning, given & GIVEN_END, (uint64_t)command->end_at);
  add_given(&meaning, given & GIVEN_OVERLAP, (uint64_t)command->overlap);
  add_given(&meaning, given & GIVEN_MISSED, (uint64_t)command->missed);
  add_given(&meaning, given & GIVEN_CATCH_UP, command->catch_up_limit);
  add_number(&meaning, command->paused);
  add_id(&meaning, given & GIVEN_TEMPLATE ? &command->template_digest : NULL);
  add_text(&meaning, command->reason);
  return end(&meaning);
}

static int compare_ids(const void *a, const void *b) { return id_compare(a, b); }

/* Queues are a set: in whatever order they are named, they mean the same. */
static void add_id_set(struct meaning *meaning, struct bytes ids) {
  struct id sorted[queue_ids_max];
  must(ids.size <= sizeof sorted && ids.size % sizeof sorted[0] == 0);
  if (ids.data == NULL) {
    add_absent(meaning);
    return;
  }
  memcpy(sorted, ids.data, ids.size);
  qsort(sorted, ids.size / sizeof sorted[0], sizeof sorted[0], compare_ids);
  add_bytes(meaning, sorted, ids.size);
}

struct id credential_digest(enum command_kind kind, const struct credential_command *command) {
  struct meaning meaning;
  begin(&meaning, command_kind_text(kind));
  add_id(&meaning, &command->id);
  add_id(&meaning, &command->application_id);
  add_text(&meaning, command->name);
  add_number(&meaning, command->permissions);
  add_id_set(&meaning, command->queue_ids);
  add_optional(&meaning, (uint64_t)command->expires_at);
  return end(&meaning);
}

/* ---- Subscriptions ---- */

struct id subscription_digest(enum command_kind kind, const struct subscription_command *command) {
  struct meaning meaning;
  begin(&meaning, command_kind_text(kind));
  add_id(&meaning, &command->id);
  add_text(&meaning, command->name);
  for (unsigned i = 0; i < 2; i++) add_number(&meaning, command->types.bits[i]);
  add_id(&meaning, &command->queue_id);
  add_id(&meaning, &command->task_id);
  add_number(&meaning, (uint64_t)command->from);
  add_number(&meaning, command->position);
  return end(&meaning);
}

/* ---- Filters ---- */

struct id list_tasks_digest(const struct list_tasks_command *command) {
  struct meaning meaning;
  begin(&meaning, command_kind_text(COMMAND_LIST_TASKS));
  add_id(&meaning, &command->queue_id);
  add_number(&meaning, (uint64_t)command->state);
  add_text(&meaning, command->handler);
  add_text(&meaning, command->business_key);
  add_optional(&meaning, (uint64_t)command->created_after);
  add_optional(&meaning, (uint64_t)command->created_before);
  return end(&meaning);
}
