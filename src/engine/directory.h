/* Who is who, for the edge: the credentials that are in force, published by the engine after each commit that changes one, so
 * that a token is judged before a body is read. Thread-safe. */
#ifndef ORBIT_ENGINE_DIRECTORY_H
#define ORBIT_ENGINE_DIRECTORY_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "core/command.h"
#include "core/model.h"

struct directory;
struct directory *directory_new(void);
void directory_free(struct directory *directory);

/* Engine: puts or replaces the credential (by id). application_disabled: its application is disabled. */
void directory_put(struct directory *directory, const struct credential *credential, bool application_disabled);

/* The principal behind a bearer token. UNAUTHENTICATED: unknown, revoked, expired at now_us, or application disabled; the
 * message does not tell which. Found by the token's hash and compared in constant time. */
enum status directory_authenticate(struct directory *directory, struct bytes token, int64_t now_us,
                                   struct principal *ret_principal, struct fault *fault);
/* OK, or UNAUTHENTICATED once the credential is not in force any more, or has another token than the one that was judged (for
 * open worker channels). */
enum status directory_check(struct directory *directory, const struct principal *who, int64_t now_us);
/* What a credential does at once, counted. A place is taken by whoever begins something in its name and left when that is over;
 * the directory outlives all of them. RATE_LIMITED: `limit` places are taken (0: no limit). */
struct directory_place;
enum status directory_enter(struct directory *directory, const struct principal *who, uint32_t limit,
                            struct directory_place **ret_place, struct fault *fault);
void directory_leave(struct directory_place *place); /* NULL is fine */
/* Rises whenever a credential in force stops being so, or changes, by an event (not by time). */
uint64_t directory_generation(struct directory *directory);

#endif
